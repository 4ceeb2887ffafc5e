package box

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// probeRequest contains data of the host that must not be visible inside.
type probeRequest struct {
	Canary string            `json:"canary"` // a file of the host
	Home   string            `json:"home"`
	Env    []string          `json:"env"`
	NS     map[string]string `json:"ns"` // the host's namespaces
}

const probeTimeout = 10 * time.Second

// Probe starts a sandbox of rec.Kind in dir, an empty directory, and checks from inside that it is isolated as its kind
// requires and that git and a shell work. The caller removes the directory.
func Probe(ctx context.Context, rec Record, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	for _, d := range []string{HomePath(dir), TmpPath(dir)} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return err
		}
	}
	canary := filepath.Join(dir, "canary")
	if err := os.WriteFile(canary, nil, 0o600); err != nil {
		return err
	}
	req, err := json.Marshal(probeRequest{Canary: canary, Home: rec.HomeInside(dir), Env: rec.environ(dir), NS: namespaces()})
	if err != nil {
		return err
	}
	args := []string{"-probe", rec.Kind}
	cmd, err := insideCommand(rec, dir, args...)
	if err != nil {
		return err
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(req), &stdout, &stderr
	cmd.WaitDelay = time.Second
	// The thread that starts the inside must outlive it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	// Kill the whole group: bwrap's second process, while young, does not die with the first.
	stop := context.AfterFunc(ctx, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	defer stop()
	err = cmd.Wait()
	if ctx.Err() != nil {
		return fmt.Errorf("probe: %w", ctx.Err())
	}
	if err != nil {
		return fmt.Errorf("%w: %s", err, lastLine(stderr.String()))
	}
	if strings.TrimSpace(stdout.String()) != "ok" {
		return errors.New("the process inside the sandbox did not report")
	}
	return nil
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexByte(s, '\n')+1:]
}

func namespaces() map[string]string {
	ns := map[string]string{}
	for _, name := range []string{"pid", "net", "user"} {
		if link, err := os.Readlink("/proc/self/ns/" + name); err == nil {
			ns[name] = link
		}
	}
	return ns
}

// probeInside runs in the sandbox.
func probeInside(ctx context.Context, kind string, in io.Reader, out io.Writer) error {
	var req probeRequest
	if err := json.NewDecoder(in).Decode(&req); err != nil {
		return fmt.Errorf("read probe: %w", err)
	}
	if err := os.WriteFile(filepath.Join(req.Home, "probe"), nil, 0o600); err != nil {
		return fmt.Errorf("home is not writable: %w", err)
	}
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", "git --version")
	cmd.Env = req.Env
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git in the box: %w: %s", err, text)
	}
	if ownFiles(kind) {
		if _, err := os.Stat(req.Canary); err == nil {
			return errors.New("a file of the host is visible")
		}
	}
	if kind != KindPlain {
		if err := probeNamespaces(ctx, req.NS); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(out, "ok")
	return err
}

func probeNamespaces(ctx context.Context, host map[string]string) error {
	for name, here := range namespaces() {
		if here == host[name] {
			return fmt.Errorf("the %s namespace is the host's", name)
		}
	}
	if self, err := os.Readlink("/proc/self"); err != nil || self != fmt.Sprint(os.Getpid()) {
		return fmt.Errorf("/proc shows processes from outside the box (%s, %v)", self, err)
	}
	links, err := net.Interfaces()
	if err != nil {
		return err
	}
	for _, link := range links {
		if link.Flags&net.FlagLoopback == 0 && link.Flags&net.FlagUp != 0 {
			return fmt.Errorf("network %s is visible", link.Name)
		}
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	defer ln.Close()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", ln.Addr().String())
	if err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	return conn.Close()
}
