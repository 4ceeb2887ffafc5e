package work

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// lockTimeout bounds the wait for an earlier command on the same workspace, whose orchestrator has died. lockPoll is
// the interval of attempts.
const (
	lockTimeout = 2 * time.Minute
	lockPoll    = 25 * time.Millisecond
)

// enter locks a workspace for one command and removes the stale locks of a killed git. Every git that the command
// starts inherits the lock, so that a git that outlives its runner is waited for, too.
func enter(ctx context.Context, dir string) (r *repo, leave func(), err error) {
	path := filepath.Join(filepath.Dir(dir), "."+filepath.Base(dir)+".lock")
	lock, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("open the workspace's lock: %w", err)
	}
	leave = func() { _ = lock.Close() } // closing releases the lock
	if err := acquire(ctx, lock); err != nil {
		leave()
		return nil, nil, fmt.Errorf("wait for an earlier command: %w", err)
	}
	if err := removeStaleLocks(filepath.Join(dir, ".git")); err != nil {
		leave()
		return nil, nil, err
	}
	r = openRepo(dir)
	r.lock = lock
	return r, leave, nil
}

func acquire(ctx context.Context, lock *os.File) error {
	ctx, cancel := context.WithTimeout(ctx, lockTimeout)
	defer cancel()
	pause := time.NewTicker(lockPoll)
	defer pause.Stop()
	for {
		err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil || !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-pause.C:
		}
	}
}
