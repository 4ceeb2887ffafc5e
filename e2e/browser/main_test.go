package browser

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/buildtest"
	"github.com/errand-bot/errand/internal/clock"
	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/internal/rsatest"
	"github.com/errand-bot/errand/internal/sim/simagent"
)

// TestMain also runs the agent.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "simagent" {
		syscall.Exit(simagent.Main(os.Args[2:], os.Stdin, os.Stdout, os.Stderr, os.Environ())) // with the race detector, os.Exit waits for a second
	}
	os.Exit(m.Run())
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// chromium returns the browser's path. Without a browser it skips the test, or fails it if ERRAND_REQUIRE_CHROMIUM is
// set.
func chromium(t *testing.T) (path string) {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	const text = "Chromium is not installed: pages are not tested in a browser"
	if os.Getenv("ERRAND_REQUIRE_CHROMIUM") != "" {
		t.Fatal(text)
	}
	t.Skip(text)
	return ""
}

// runner builds errand-runner.
func runner(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	check(t, buildtest.Program(t.Context(), dir, "errand-runner"))
	return dir
}

// script is the simulated model's script: the rules of this test, then the demo's, whose implementation waits once so
// that the test can watch it.
func script(t *testing.T) string {
	t.Helper()
	own, err := os.ReadFile("testdata/model.yaml")
	check(t, err)
	usual, err := os.ReadFile("../../internal/demo/script.yaml")
	check(t, err)
	_, rules, ok := strings.Cut(string(usual), "\nrules:\n")
	const turn = "      - text: Green. I commit the fix with its tests.\n"
	if !ok || strings.Count(rules, turn) != 1 {
		t.Fatal("the demo's script has changed: the turn to wait before is missing")
	}
	return string(own) + strings.Replace(rules, turn, turn+"        wait: "+gate+"\n", 1)
}

// gate blocks the implementation until the test has watched it.
const gate = "watched"

// newWorld starts errand and the simulators.
func newWorld(t *testing.T) *demo.World {
	t.Helper()
	exe, err := os.Executable()
	check(t, err)
	dir := t.TempDir()
	log, err := os.Create(filepath.Join(dir, "errand.log"))
	check(t, err)
	w, err := demo.New(t.Context(), demo.Config{
		Dir: dir, BinDir: runner(t), Agent: []string{exe, "simagent"}, StandIn: true, Fast: true, Kind: "plain", Script: script(t), Key: rsatest.Key(), Extra: "limits: {vms: 8}\n",
		Log: zerolog.New(log).With().Timestamp().Logger(), Version: "demo",
	})
	check(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			text, err := os.ReadFile(log.Name())
			t.Logf("the end of errand's log (%v):\n%s", err, tail(string(text), 30))
		}
		check(t, w.Close())
		check(t, log.Close())
	})
	return w
}

func tail(text string, lines int) string {
	all := strings.Split(text, "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// pause waits between two checks of a condition.
func pause(ctx context.Context) {
	_ = clock.Sleep(ctx, 40*time.Millisecond) // the calling loops have a deadline
}
