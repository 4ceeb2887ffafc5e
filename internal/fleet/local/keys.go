package local

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/crypto/ssh"

	"github.com/errand-bot/errand/internal/fleet/local/box"
)

// maxSocketPath is the maximum length of a socket path on all supported systems.
const maxSocketPath = 103

func newHostKey(path string) (public string, err error) {
	private, public, err := box.NewKey()
	if err != nil {
		return "", err
	}
	return public, os.WriteFile(path, private, 0o600)
}

func authorizedKey(key ssh.PublicKey) string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
}

// socketPaths puts the sockets into the sandbox's directory, or, if that path is too long for a socket, into a short
// private directory named after it.
func socketPaths(dir string) (sshSocket, control string, err error) {
	sum := sha256.Sum256([]byte(dir))
	base := dir
	if len(filepath.Join(base, "ctl.sock")) > maxSocketPath {
		root, err := runtimeRoot()
		if err != nil {
			return "", "", err
		}
		base = filepath.Join(root, hex.EncodeToString(sum[:6]))
		if err := os.MkdirAll(base, 0o700); err != nil {
			return "", "", fmt.Errorf("make socket directory: %w", err)
		}
	}
	return filepath.Join(base, "ssh.sock"), filepath.Join(base, "ctl.sock"), nil
}

// runtimeRoot returns a short directory that only errand's user can access.
func runtimeRoot() (string, error) {
	root := filepath.Join(os.TempDir(), fmt.Sprintf("errand-%d", os.Getuid()))
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" && len(dir) < 40 {
		root = filepath.Join(dir, "errand")
	}
	if len(root) > 60 { // TMPDIR may be long, too
		root = fmt.Sprintf("/tmp/errand-%d", os.Getuid())
	}
	if err := os.MkdirAll(root, 0o700); err != nil {
		return "", fmt.Errorf("make socket directory: %w", err)
	}
	info, err := os.Lstat(root)
	if err != nil {
		return "", fmt.Errorf("make socket directory: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || int(stat.Uid) != os.Getuid() || info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("socket directory %s: does not belong to errand alone", root)
	}
	return root, nil
}
