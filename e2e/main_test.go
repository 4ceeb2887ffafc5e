package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/errand-bot/errand/e2e/stage"
	"github.com/errand-bot/errand/internal/heavytest"
)

// atOnce returns the number of worlds that run in parallel; they mostly wait, but compute with the race detector.
func atOnce() string {
	if heavytest.Raced {
		return "4"
	}
	return "8"
}

// shared holds the environment of all stories.
type shared struct {
	stage.Shared
	// kinds are the kinds of sandboxes that work on this host.
	kinds map[string]bool
}

// common is set once by TestMain, before any test runs.
var common shared

// TestMain also runs the agent and, for stories that kill it, the server.
func TestMain(m *testing.M) {
	if code, played := stage.Role(os.Args); played {
		os.Exit(code)
	}
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = f.Value.Set(atOnce())
	}
	dir, err := os.MkdirTemp("", "errand-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	common = shared{Shared: stage.Prepare(dir), kinds: kinds()}
	code := m.Run()
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// kinds tries which kinds of sandboxes work on this host.
func kinds() map[string]bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return map[string]bool{
		"bwrap":  exec.CommandContext(ctx, "bwrap", "--ro-bind", "/", "/", "--unshare-all", "--proc", "/proc", "--dev", "/dev", "true").Run() == nil,
		"userns": exec.CommandContext(ctx, "unshare", "--user", "--map-root-user", "--net", "--pid", "--fork", "--mount-proc", "true").Run() == nil,
	}
}
