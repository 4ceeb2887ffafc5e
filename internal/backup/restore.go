package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/durable"
	"github.com/errand-bot/errand/state/kv/boltkv"
)

// Restoring is how a backup is restored.
type Restoring struct {
	// Data is the data folder. It is created if it does not exist.
	Data string
	// App and Deployment are those of the configuration.
	App        int64
	Deployment string
	// Force restores although the backup is of another App or deployment, or the data folder is in use: its content is then moved
	// into a folder below it.
	Force bool
	// Prepare changes the unpacked store before it is used.
	Prepare func(ctx context.Context, store string, info Info) error
	Now     func() time.Time
}

// A RefusedError lists the reasons for which a backup is restored only with Restoring.Force.
type RefusedError struct{ Reasons []string }

func (e *RefusedError) Error() string { return strings.Join(e.Reasons, "\n") }

// Restored is what Restore did.
type Restored struct {
	Contents
	// Before is the folder with the earlier content of the data folder; empty if there was none.
	Before string
}

// Restore replaces the content of the data folder by that of a backup. Until the backup has been verified and unpacked, and the store
// prepared, it changes nothing. The folders of sandboxes and copied repositories stay. If it is interrupted while it replaces files,
// errand refuses to start until it has been repeated. The error is boltkv.ErrLocked while errand runs.
func Restore(ctx context.Context, from io.ReadSeeker, r Restoring) (Restored, error) {
	found, err := Read(ctx, from, nil)
	if err != nil {
		return Restored{}, err
	}
	old, err := r.replaced()
	if err != nil {
		return Restored{}, err
	}
	if err := r.mayReplace(found.Info, old); err != nil {
		return Restored{}, err
	}
	if err := durable.MkdirAll(r.Data, 0o700); err != nil {
		return Restored{}, fmt.Errorf("make the data folder: %w", err)
	}
	store := filepath.Join(r.Data, storeName)
	unlock, err := boltkv.Lock(store)
	if err != nil {
		return Restored{}, fmt.Errorf("restore: %w", err)
	}
	defer r.removePlaceholder(store)
	done, err := r.restore(ctx, from, found.Info)
	return done, errors.Join(err, unlock())
}

// removePlaceholder removes the store if it is empty: it was created for its lock.
func (r Restoring) removePlaceholder(store string) {
	if info, err := os.Stat(store); err == nil && info.Size() == 0 {
		_ = os.Remove(store) // errand would create it again
	}
}

// replaced lists what would be replaced.
func (r Restoring) replaced() ([]string, error) {
	entries, err := os.ReadDir(r.Data)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the data folder: %w", err)
	}
	var list []string
	for _, e := range entries {
		if info, err := e.Info(); err == nil && e.Name() == storeName && info.Size() == 0 {
			continue // it was created for a lock
		}
		if !isLeftOut(e.Name()) {
			list = append(list, e.Name())
		}
	}
	return list, nil
}

// mayReplace returns why the backup is not restored, unless Force is set.
func (r Restoring) mayReplace(b Info, old []string) error {
	var reasons []string
	if len(old) > 0 {
		reasons = append(reasons, fmt.Sprintf("the data folder %s is not empty; its content would be moved into a folder %s… there", r.Data, beforePrefix))
	}
	if b.App != r.App {
		reasons = append(reasons, fmt.Sprintf("the backup is of the GitHub App %d, and the configuration has %d", b.App, r.App))
	}
	if b.Deployment != r.Deployment {
		reasons = append(reasons, fmt.Sprintf("the backup is of the deployment %.100q, and the configuration has %q: errand would not know its own VMs", b.Deployment, r.Deployment))
	}
	if r.Force || len(reasons) == 0 {
		return nil
	}
	return &RefusedError{reasons}
}

// restore unpacks the backup beside the files in use, and then replaces these.
func (r Restoring) restore(ctx context.Context, from io.ReadSeeker, info Info) (Restored, error) {
	fresh := filepath.Join(r.Data, newFolder)
	if err := os.RemoveAll(fresh); err != nil {
		return Restored{}, fmt.Errorf("remove an earlier attempt: %w", err)
	}
	found, err := r.unpack(ctx, from, fresh)
	if err == nil {
		err = r.prepare(ctx, fresh, info)
	}
	if err != nil {
		return Restored{}, errors.Join(err, os.RemoveAll(fresh))
	}
	done := Restored{Contents: found}
	done.Before, err = r.swap(fresh)
	if err != nil {
		return done, fmt.Errorf("the files were only replaced in part: %w\nCorrect this and repeat the command with --force; errand does not start before", err)
	}
	return done, nil
}

func (r Restoring) unpack(ctx context.Context, from io.ReadSeeker, to string) (Contents, error) {
	if _, err := from.Seek(0, io.SeekStart); err != nil {
		return Contents{}, fmt.Errorf("read the backup: %w", err)
	}
	if err := os.Mkdir(to, 0o700); err != nil {
		return Contents{}, fmt.Errorf("unpack the backup: %w", err)
	}
	return Read(ctx, from, func(name string, at time.Time, content io.Reader) error {
		path := filepath.Join(to, filepath.FromSlash(name))
		if err := durable.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return fmt.Errorf("unpack %s: %w", name, err)
		}
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return fmt.Errorf("unpack %s: %w", name, err)
		}
		_, err = io.Copy(f, content)
		if err == nil {
			err = os.Chtimes(path, at, at) // retention goes by it
		}
		if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
			return fmt.Errorf("unpack %s: %w", name, err)
		}
		return nil
	})
}

// prepare checks the unpacked store, changes it, and makes the names of all unpacked files durable.
func (r Restoring) prepare(ctx context.Context, fresh string, info Info) error {
	store := filepath.Join(fresh, storeName)
	if err := boltkv.CheckFile(ctx, store); err != nil {
		return damaged("its store: %w", err)
	}
	if err := r.Prepare(ctx, store, info); err != nil {
		return fmt.Errorf("prepare the restored store: %w", err)
	}
	return filepath.WalkDir(fresh, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return err
		}
		return durable.SyncDir(path)
	})
}

// swap moves the content of the data folder away, and the unpacked one into its place, the store last.
func (r Restoring) swap(fresh string) (before string, err error) {
	marker := filepath.Join(r.Data, unfinished)
	if err := durable.WriteFile(marker, nil, 0o600); err != nil {
		return "", err
	}
	old, err := r.replaced()
	if err != nil {
		return "", err
	}
	if len(old) > 0 {
		if before, err = r.newBefore(); err != nil {
			return "", err
		}
		if err := move(r.Data, before, old); err != nil {
			return before, err
		}
	}
	entries, err := os.ReadDir(fresh)
	if err != nil {
		return before, err
	}
	var names []string
	for _, e := range entries {
		if e.Name() != storeName {
			names = append(names, e.Name())
		}
	}
	if err := move(fresh, r.Data, append(names, storeName)); err != nil {
		return before, err
	}
	return before, errors.Join(os.Remove(fresh), os.Remove(marker), durable.SyncDir(r.Data))
}

// newBefore makes the folder for the earlier content. An interrupted restore may have made one in the same second.
func (r Restoring) newBefore() (path string, err error) {
	name := filepath.Join(r.Data, beforePrefix+r.Now().UTC().Format(nameTime))
	for n := range 100 {
		if path = name; n > 0 {
			path = fmt.Sprintf("%s-%d", name, n+1)
		}
		if err = os.Mkdir(path, 0o700); !errors.Is(err, fs.ErrExist) {
			return path, err
		}
	}
	return "", err
}

// move gives files another folder, and makes both folders durable.
func move(from, to string, names []string) error {
	for _, name := range names {
		if err := os.Rename(filepath.Join(from, name), filepath.Join(to, name)); err != nil {
			return err
		}
	}
	return errors.Join(durable.SyncDir(to), durable.SyncDir(from))
}

// Unfinished returns an error if a restore into the data folder was interrupted while it replaced files.
func Unfinished(data string) error {
	_, err := os.Lstat(filepath.Join(data, unfinished))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("look for an unfinished restore: %w", err)
	}
	return fmt.Errorf("`errand restore` was interrupted while it replaced the files in %s; repeat it with --force", data)
}
