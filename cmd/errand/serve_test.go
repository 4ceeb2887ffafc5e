package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/errand-bot/errand/internal/buildtest"
	"github.com/errand-bot/errand/internal/cli"
	"github.com/errand-bot/errand/internal/cli/clitest"
)

// TestServe runs the built program: it serves, keeps retrying a GitHub that is down, and ends on a signal.
func TestServe(t *testing.T) {
	t.Parallel()
	bin := build(t)
	t.Run("says why it cannot", func(t *testing.T) { t.Parallel(); refuses(t, bin) })
	t.Run("in a container", func(t *testing.T) { t.Parallel(); refusesInContainer(t, bin) })
	tests := map[string]struct {
		signal syscall.Signal
		hold   bool // an endless request delays the graceful end
		again  bool // a second signal
		limit  string
	}{
		"stopped by SIGTERM":                {signal: syscall.SIGTERM},
		"stopped by SIGINT":                 {signal: syscall.SIGINT},
		"second signal ends it immediately": {signal: syscall.SIGINT, hold: true, again: true},
		"one signal: waits for the limit":   {signal: syscall.SIGTERM, hold: true, limit: "500ms"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := command(t, bin, "127.0.0.1:0", t.TempDir())
			if tt.limit != "" {
				file := cmd.Args[len(cmd.Args)-1]
				if err := os.WriteFile(file, []byte(strings.Replace(string(read(t, file)), "shutdown: 30s", "shutdown: "+tt.limit, 1)), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			p := begin(t, cmd)
			if got := get(t, "http://"+p.addr+"/healthz"); got != http.StatusOK {
				t.Errorf("/healthz answers %d", got)
			}
			if got := get(t, "http://"+p.addr+"/readyz"); got != http.StatusServiceUnavailable {
				t.Errorf("/readyz answers %d while GitHub is down", got)
			}
			if tt.hold {
				hold(t, p.addr)
			}
			if err := p.cmd.Process.Signal(tt.signal); err != nil {
				t.Fatal(err)
			}
			if tt.again {
				// The listener closes when the graceful end begins; after that a signal kills the process.
				waitClosed(t, p.addr)
				if err := p.cmd.Process.Signal(tt.signal); err != nil {
					t.Fatal(err)
				}
			}
			err := p.wait(t)
			if tt.again {
				var exit *exec.ExitError
				if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != tt.signal {
					t.Errorf("ended with %v, want the signal", err)
				}
				return
			}
			if err != nil {
				t.Errorf("ended with %v", err)
			}
		})
	}
}

// refuses runs errand on a port that is in use.
func refuses(t *testing.T, bin string) {
	t.Helper()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	cmd := command(t, bin, taken.Addr().String(), t.TempDir())
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != cli.ExitFailed || !strings.Contains(string(out), "choose another address with `listen`") {
		t.Errorf("%v\n%s", err, out)
	}
}

// refusesInContainer runs errand as the program of a container with sandboxes that isolate nothing, then with none at all. An operator may
// still allow the former.
func refusesInContainer(t *testing.T, bin string) {
	t.Helper()
	const advice = "; set provider: hetzner, so that agents work on VMs, or run errand as a service of the host"
	for name, c := range map[string]struct{ local, path, problem string }{
		"plain":    {"{kind: plain}", os.Getenv("PATH"), "cannot isolate agents in this container, because only sandboxes of the kind plain work (errand doctor says why)" + advice},
		"no bwrap": {"{kind: bwrap}", t.TempDir(), "does not work in this container" + advice},
	} {
		cmd := command(t, bin, "127.0.0.1:0", t.TempDir())
		cmd.Env = append(cmd.Env, "container=oci", "PATH="+c.path)
		file := cmd.Args[len(cmd.Args)-1]
		text := strings.Replace(string(read(t, file)), "{kind: plain}", c.local, 1)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, _ := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != cli.ExitFailed || !strings.Contains(string(out), c.problem) {
			t.Errorf("%s: %v, want an error with %q\n%s", name, cmd.ProcessState, c.problem, out)
		}
	}
	cmd := command(t, bin, "127.0.0.1:0", t.TempDir())
	cmd.Env = append(cmd.Env, "container=oci")
	file := cmd.Args[len(cmd.Args)-1]
	text := strings.Replace(string(read(t, file)), "{kind: plain}", "{kind: plain, allow_unsandboxed: true}", 1)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := begin(t, cmd)
	p.stop(t)
}

// build builds errand and errand-runner into one folder.
func build(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"errand", "errand-runner"} {
		if err := buildtest.Program(t.Context(), dir, name); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "errand")
}

// command returns `errand serve` with a GitHub that is down.
func command(t *testing.T, bin, listen, dir string) *exec.Cmd {
	t.Helper()
	github := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }))
	t.Cleanup(github.Close)
	env := append(os.Environ(), "container=") // wherever this test runs
	for name, value := range clitest.Secrets(t) {
		env = append(env, name+"="+value)
	}
	file := filepath.Join(dir, "config.yml")
	text := fmt.Sprintf(`listen: %s
data: %s
github: {app_id: 1, private_key: env:ERRAND_PRIVATE_KEY, webhook_secret: env:ERRAND_WEBHOOK_SECRET, url: %q}
admin: {token: env:ERRAND_ADMIN_TOKEN}
models: {anthropic: {url: %q, key: env:ANTHROPIC_API_KEY}}
local: {kind: plain}
timing: {shutdown: 30s}
`, listen, filepath.Join(dir, "data"), github.URL, github.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, bin, "serve", "-c", file)
	cmd.Env = env
	return cmd
}

// process is a running errand.
type process struct {
	cmd  *exec.Cmd
	addr string
	done chan error
}

// start starts errand on a free port.
func start(t *testing.T, bin string) *process {
	t.Helper()
	return begin(t, command(t, bin, "127.0.0.1:0", t.TempDir()))
}

// begin starts a command that runs errand, and reads its address from the log.
func begin(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{cmd: cmd, done: make(chan error, 1)}
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stderr)
	for p.addr == "" && lines.Scan() {
		var entry struct{ Message, Listen string }
		if json.Unmarshal(lines.Bytes(), &entry) == nil && entry.Message == "errand started" {
			p.addr = entry.Listen
		}
	}
	go func() {
		_, _ = io.Copy(io.Discard, stderr)
		p.done <- p.cmd.Wait()
	}()
	if p.addr == "" {
		t.Fatalf("errand did not start: %v", p.wait(t))
	}
	return p
}

// wait waits for the end; command's context limits it.
func (p *process) wait(t *testing.T) error {
	t.Helper()
	select {
	case err := <-p.done:
		return err
	case <-time.After(time.Minute):
		t.Fatal("errand does not end")
		return nil
	}
}

// stop ends errand gracefully.
func (p *process) stop(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := p.wait(t); err != nil {
		t.Fatalf("ended with %v", err)
	}
}

func get(t *testing.T, url string) int {
	t.Helper()
	resp, err := webtest.Client().Get(url)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// hold opens a request whose body never ends.
func hold(t *testing.T, addr string) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := fmt.Fprintf(conn, "POST /api/github/hook HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nX-GitHub-Event: issues\r\nX-GitHub-Delivery: 7e1c1b5e-0000-4000-8000-000000000001\r\nX-Hub-Signature-256: sha256=%064d\r\nExpect: 100-continue\r\nContent-Length: 100\r\n\r\n", 0); err != nil {
		t.Fatal(err)
	}
	// The response to Expect means that the handler is reading.
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil || !strings.Contains(line, "100") {
		t.Fatalf("answer %q, %v", line, err)
	}
}

// waitClosed waits until the port is closed.
func waitClosed(t *testing.T, addr string) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for time.Now().Before(deadline) {
		conn, err := net.DialTimeout("tcp", addr, time.Second)
		if err != nil {
			return
		}
		_ = conn.Close()
	}
	t.Fatal("errand still listens")
}
