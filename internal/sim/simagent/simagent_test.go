package simagent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/sim/simagent"
	"github.com/errand-bot/errand/internal/sim/simmodel"
)

// asAgent is the environment variable that makes the test binary run the agent.
const asAgent = "ERRAND_TEST_SIMAGENT"

func TestMain(m *testing.M) {
	if os.Getenv(asAgent) != "" {
		os.Exit(simagent.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Environ()))
	}
	os.Exit(m.Run())
}

// world is a simulated model and a directory in which the agent runs.
type world struct {
	t     *testing.T
	model *simmodel.Server
	url   string
	work  string
	home  string
	env   []string
	flags []string
}

// newWorld starts a model that answers every prompt with the turns.
func newWorld(t *testing.T, turns ...simmodel.Turn) *world {
	t.Helper()
	return newWorldOf(t, simmodel.Script{Rules: []simmodel.Rule{{Turns: turns}}})
}

func newWorldOf(t *testing.T, s simmodel.Script) *world {
	t.Helper()
	model, err := simmodel.New(simmodel.Config{Script: s, Key: "key"})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(model)
	t.Cleanup(web.Close)
	t.Cleanup(web.CloseClientConnections)
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		t: t, model: model, url: web.URL, work: filepath.Join(root, "work"), home: filepath.Join(root, "home"),
		flags: []string{"-p", "--output-format", "stream-json", "--verbose", "--dangerously-skip-permissions"},
	}
	for _, dir := range []string{w.work, w.home} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	w.env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + w.home, asAgent + "=1", "IS_SANDBOX=1",
		"ANTHROPIC_BASE_URL=" + web.URL, "ANTHROPIC_AUTH_TOKEN=key", "SIMAGENT_RETRY_SCALE=0.001",
	}
	return w
}

// command returns the agent's command with the world's flags and more.
func (w *world) command(prompt string, more ...string) (cmd *exec.Cmd, stdout, stderr *bytes.Buffer) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	w.t.Cleanup(cancel)
	cmd = exec.CommandContext(ctx, os.Args[0], append(append([]string{}, w.flags...), more...)...)
	stdout, stderr = &bytes.Buffer{}, &bytes.Buffer{}
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = w.work, w.env, strings.NewReader(prompt), stdout, stderr
	return cmd, stdout, stderr
}

// ran is the result of a run.
type ran struct {
	code   int
	signal string
	lines  []map[string]any
	out    string
	stderr string
}

// run runs the agent to its end.
func (w *world) run(prompt string, more ...string) ran {
	w.t.Helper()
	cmd, stdout, stderr := w.command(prompt, more...)
	return w.ended(cmd.Run(), stdout, stderr)
}

func (w *world) ended(err error, stdout, stderr *bytes.Buffer) ran {
	w.t.Helper()
	r := ran{out: stdout.String(), stderr: stderr.String()}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		r.code = exit.ExitCode()
		if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			r.signal = ws.Signal().String()
		}
	} else if err != nil {
		w.t.Fatal(err)
	}
	for line := range strings.Lines(r.out) {
		var ev map[string]any
		if json.Unmarshal([]byte(line), &ev) == nil {
			r.lines = append(r.lines, ev)
		}
	}
	return r
}

// result returns the last line, which must be a result.
func (r ran) result(t *testing.T) map[string]any {
	t.Helper()
	if len(r.lines) == 0 || r.lines[len(r.lines)-1]["type"] != "result" {
		t.Fatalf("got no result: code %d %s\nstdout: %s\nstderr: %s", r.code, r.signal, r.out, r.stderr)
	}
	return r.lines[len(r.lines)-1]
}

// want checks fields of the result, each in its printed form.
func (r ran) want(t *testing.T, code int, fields map[string]string) {
	t.Helper()
	if r.code != code || r.signal != "" {
		t.Errorf("got exit %d %s, want %d\nstderr: %s", r.code, r.signal, code, r.stderr)
	}
	res := r.result(t)
	for k, want := range fields {
		if got := fmt.Sprint(res[k]); got != want {
			t.Errorf("got %s = %q, want %q", k, got, want)
		}
	}
}

// count returns how many lines are of the type and subtype.
func (r ran) count(kind, subtype string) int {
	n := 0
	for _, l := range r.lines {
		if l["type"] == kind && (subtype == "" || l["subtype"] == subtype) {
			n++
		}
	}
	return n
}

// waitFor returns when the file exists in the work directory.
func (w *world) waitFor(name string) {
	w.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	end := time.NewTimer(30 * time.Second)
	defer end.Stop()
	for !w.exists(name) {
		select {
		case <-tick.C:
		case <-end.C:
			w.t.Fatalf("timeout while waiting for %s", name)
		}
	}
}

func (w *world) exists(name string) bool {
	_, err := os.Stat(filepath.Join(w.work, name))
	return err == nil
}

func (w *world) read(name string) string {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(w.work, name))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(data)
}

func (w *world) write(name, content string) string {
	w.t.Helper()
	path := filepath.Join(w.work, name)
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		w.t.Fatal(err)
	}
	return path
}
