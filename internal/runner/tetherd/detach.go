package tetherd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// detachTimeout bounds the time until the daemon has opened its port.
const detachTimeout = 20 * time.Second

// ServeDetached starts a daemon in the background, in its own session, by calling this program's "tether serve", and
// returns when it answers. If a daemon already serves the directory, ServeDetached returns its status, or an error if
// its port differs from the requested one.
func ServeDetached(ctx context.Context, root string, config Config) (Status, error) {
	ctx, cancel := context.WithTimeout(ctx, detachTimeout)
	defer cancel()
	if status, err := Ask(ctx, config.Dir); err == nil {
		status.Already = true
		return status, checkPort(status, config.Listen)
	}
	if err := os.MkdirAll(config.Dir, 0o700); err != nil {
		return Status{}, fmt.Errorf("serve tether: %w", err)
	}
	logPath := filepath.Join(config.Dir, "daemon.log")
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return Status{}, fmt.Errorf("serve tether: %w", err)
	}
	defer log.Close()
	self, err := os.Executable()
	if err != nil {
		return Status{}, fmt.Errorf("serve tether: find own file: %w", err)
	}
	args := []string{"tether", "serve", "--root", root, "--listen", config.Listen}
	if config.Hold > 0 {
		args = append(args, "--hold", config.Hold.String())
	}
	cmd := exec.Command(self, args...)
	cmd.Dir = "/"
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return Status{}, fmt.Errorf("serve tether: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return awaitDaemon(ctx, config, ended, logPath)
}

func awaitDaemon(ctx context.Context, config Config, ended <-chan error, logPath string) (Status, error) {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		if status, err := Ask(ctx, config.Dir); err == nil {
			return status, checkPort(status, config.Listen)
		}
		select {
		case <-ctx.Done():
			return Status{}, fmt.Errorf("serve tether: %w", ctx.Err())
		case err := <-ended:
			// Another daemon may have been faster.
			if status, err := Ask(ctx, config.Dir); err == nil {
				status.Already = true
				return status, checkPort(status, config.Listen)
			}
			words, _ := os.ReadFile(logPath)
			return Status{}, fmt.Errorf("serve tether: %w: %s", orEndedAtOnce(err), strings.TrimSpace(string(words)))
		case <-ticker.C:
		}
	}
}

func orEndedAtOnce(err error) error {
	if err == nil {
		return errors.New("it ended at once")
	}
	return err
}

// checkPort compares the daemon's port with the requested one; 0 accepts any.
func checkPort(status Status, listen string) error {
	_, want, err := net.SplitHostPort(listen)
	if err != nil {
		return fmt.Errorf("serve tether: %w", err)
	}
	_, have, err := net.SplitHostPort(status.Listen)
	if err != nil {
		return fmt.Errorf("serve tether: %w", err)
	}
	if want != "0" && want != have {
		return fmt.Errorf("serve tether: %w on port %s, not %s", ErrServing, have, want)
	}
	return nil
}
