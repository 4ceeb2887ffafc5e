package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/fleet/local/box"
)

// launch starts a detached supervisor and waits until the sandbox serves. The supervisor gets none of errand's
// environment, because a plain sandbox could read it there.
func (p *Provider) launch(ctx context.Context, dir string) error {
	log, err := os.OpenFile(box.LogPath(dir), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(p.cfg.Runner, "box-supervise", "-dir", dir)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8"}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start supervisor: %w", err)
	}
	exited := make(chan struct{})
	go func() { // reaps it if it ends while this process runs
		_ = cmd.Wait()
		close(exited)
	}()
	return p.awaitReady(ctx, dir, exited)
}

// awaitReady polls the supervisor until the sandbox serves.
func (p *Provider) awaitReady(ctx context.Context, dir string, exited <-chan struct{}) error {
	rec, err := box.ReadRecord(dir)
	if err != nil {
		return err
	}
	poll := time.NewTicker(upPoll)
	defer poll.Stop()
	var last error
	for {
		status, err := box.Ask(ctx, rec)
		if err == nil && status.Ready {
			return nil
		}
		last = errors.Join(err) // nil while it is just not ready yet
		select {
		case <-poll.C:
		case <-exited:
			// It may have found another supervisor, started by an abandoned call.
			if alive, err := hasSupervisor(dir); err != nil || !alive {
				return p.startFailure(dir)
			}
			exited = nil
		case <-ctx.Done():
			return fmt.Errorf("wait for the box to serve: %w", errors.Join(context.Cause(ctx), last))
		}
	}
}

// startFailure explains why a supervisor ended before the sandbox served. If the supervisor recorded a reason, the
// sandbox has ended for good.
func (p *Provider) startFailure(dir string) error {
	kind, detail := errors.New("the box did not start"), "its supervisor ended"
	if end, ok, err := box.ReadEnd(dir); err == nil && ok {
		kind, detail = fleet.ErrEnded, end.Detail
	}
	if data, err := os.ReadFile(box.LogPath(dir)); err == nil {
		if tail := bytes.TrimSpace(data); len(tail) > 0 {
			detail += ": " + string(tail[max(0, len(tail)-1000):])
		}
	}
	return fmt.Errorf("%w: %s", kind, detail)
}
