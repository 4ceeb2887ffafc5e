package tetherd

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// maxSocketPath is safely below the limit of 104 to 108 bytes of common systems.
const maxSocketPath = 100

// socketPath returns the path of the control socket of a directory: in the directory or, if that path is too long for a
// socket, in a private directory below /tmp.
func socketPath(dir string) string {
	path := filepath.Join(dir, "control.sock")
	if len(path) <= maxSocketPath {
		return path
	}
	sum := sha256.Sum256([]byte(dir))
	name := "errand-" + strconv.Itoa(os.Getuid()) + "-" + hex.EncodeToString(sum[:8])
	return filepath.Join("/tmp", name, "control.sock")
}

// listenControl opens the control socket, which only this user may use. The caller holds the directory's lock, so an
// existing socket file is stale.
func listenControl(dir string) (net.Listener, error) {
	path := socketPath(dir)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("create socket directory: %w", err)
	}
	if err := checkOwned(filepath.Dir(path)); err != nil {
		return nil, err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("remove old socket: %w", err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("open control socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("protect control socket: %w", err)
	}
	return l, nil
}

// checkOwned refuses a directory that another user made, which is possible below /tmp.
func checkOwned(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("check socket directory: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || !ok || int(stat.Uid) != os.Getuid() || info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("check socket directory: %s belongs to another user or is writable by others", dir)
	}
	return nil
}
