//go:build linux

package rootbox

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Exec runs a program in the box as root, without SSH, and returns its output. Tests use it to inspect the box; it does
// not count against the box's limits and is not frozen with it.
func (b *Box) Exec(ctx context.Context, argv ...string) (string, error) {
	l := b.current()
	if l == nil {
		return "", fmt.Errorf("run %s in box %s: it is off", argv[0], b.Name)
	}
	enter := []string{"-t", strconv.Itoa(l.pid), "-m", "-p", "-n", "-u", "-i", "--", "env", "-i", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"}
	cmd := exec.CommandContext(ctx, "nsenter", append(enter, argv...)...)
	cmd.WaitDelay = time.Second
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("run %s in box %s: %w: %s", strings.Join(argv, " "), b.Name, err, tail(errOut.Bytes(), 500))
	}
	return strings.TrimSpace(out.String()), nil
}

// path returns the host's path of a file in the running box.
func (l *life) path(at string) string {
	return filepath.Join("/proc", strconv.Itoa(l.pid), "root", at)
}

// banner returns nil if an SSH server sends its banner at the address.
func banner(ctx context.Context, addr netip.Addr) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", netip.AddrPortFrom(addr, 22).String())
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	word := make([]byte, 4)
	if _, err := conn.Read(word); err != nil {
		return err
	}
	if string(word) != "SSH-" {
		return fmt.Errorf("%q is not an SSH banner", word)
	}
	return nil
}
