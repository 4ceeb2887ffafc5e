package local

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/fleet/local/box"
)

const (
	deleteTimeout = 30 * time.Second
	// answerPatience is how long a supervisor may take to respond at all.
	answerPatience = 2 * time.Second
	// stopPatience is how long it may take to end its sandbox before it is killed together with the sandbox.
	stopPatience = 8 * time.Second
)

// Delete ends a sandbox and removes its directory. It returns when every process of the sandbox is dead; in a plain
// sandbox, those that can be found.
func (p *Provider) Delete(ctx context.Context, name string, why fleet.Reason) error {
	if err := p.remove(ctx, name, why); err != nil {
		return fmt.Errorf("delete VM %s: %w", name, err)
	}
	return nil
}

func (p *Provider) remove(ctx context.Context, name string, why fleet.Reason) error {
	if err := fleet.ValidName(name); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, deleteTimeout)
	defer cancel()
	unlock, err := p.lockName(ctx, name)
	if err != nil {
		return err
	}
	defer unlock()
	p.sweep()
	dir := p.boxDir(name)
	rec, err := box.ReadRecord(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case rec.Labels[fleet.LabelDeployment] != p.cfg.Deployment:
		return nil // another deployment's: treat it as missing
	}
	if err := p.stop(ctx, dir, rec, why); err != nil {
		return err
	}
	// The name is free immediately, even if removing the files takes long or this process dies.
	trash := filepath.Join(filepath.Dir(dir), trashPrefix+rand.Text())
	if err := os.Rename(dir, trash); err != nil {
		return err
	}
	if sockets := filepath.Dir(rec.SSHSocket); sockets != dir {
		_ = os.RemoveAll(sockets)
	}
	return RemoveAll(trash)
}

// stop returns when the sandbox's lock is free.
func (p *Provider) stop(ctx context.Context, dir string, rec box.Record, why fleet.Reason) error {
	alive, err := hasSupervisor(dir)
	if err != nil || !alive {
		return err
	}
	asked := p.askToStop(ctx, dir, rec, why)
	if asked == nil {
		return nil
	}
	if err := box.KillSupervisor(ctx, rec); err != nil {
		return fmt.Errorf("the supervisor does not end: %w", errors.Join(asked, err))
	}
	return p.awaitFree(ctx, dir)
}

// askToStop fails soon if the supervisor does not respond at all, and eventually if the sandbox continues to run.
func (p *Provider) askToStop(ctx context.Context, dir string, rec box.Record, why fleet.Reason) error {
	answer, cancel := context.WithTimeout(ctx, answerPatience)
	defer cancel()
	if _, err := box.Ask(answer, rec); errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	ctx, cancel = context.WithTimeout(ctx, stopPatience)
	defer cancel()
	asked := box.Stop(ctx, rec, string(why), "")
	// The lock decides: the sandbox may have been about to end anyway.
	if err := p.awaitFree(ctx, dir); err != nil {
		return errors.Join(asked, err)
	}
	return nil
}

func (p *Provider) awaitFree(ctx context.Context, dir string) error {
	poll := time.NewTicker(upPoll)
	defer poll.Stop()
	for {
		alive, err := hasSupervisor(dir)
		if err != nil || !alive {
			return err
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for the box to end: %w", context.Cause(ctx))
		}
	}
}

const (
	trashPrefix = ".trash-"
	newPrefix   = ".new-"
	probePrefix = ".probe-"
	// leftoverAge is well above the time to create or probe a sandbox.
	leftoverAge = time.Hour
)

// sweep removes leftovers of interrupted calls. It is best effort: the next deletion retries.
func (p *Provider) sweep() {
	boxes := filepath.Join(p.cfg.Dir, boxesDir)
	entries, err := os.ReadDir(boxes)
	if err != nil {
		return
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			continue
		}
		old := p.cfg.Now().Sub(info.ModTime()) > leftoverAge
		young := strings.HasPrefix(e.Name(), newPrefix) || strings.HasPrefix(e.Name(), probePrefix)
		if strings.HasPrefix(e.Name(), trashPrefix) || (young && old) {
			_ = RemoveAll(filepath.Join(boxes, e.Name()))
		}
	}
}

// RemoveAll deletes a folder like os.RemoveAll, but also removes read-only directories, such as Go's module cache.
func RemoveAll(path string) error {
	if err := os.RemoveAll(path); err == nil {
		return nil
	}
	_ = filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(name, 0o700)
		}
		return nil
	})
	return os.RemoveAll(path)
}
