package crash

import (
	"fmt"
	"os"
	"testing"

	"github.com/errand-bot/errand/e2e/stage"
)

// common is set once by TestMain, before any test runs.
var common stage.Shared

// TestMain also runs the agent, and the errand that is killed.
func TestMain(m *testing.M) {
	if code, played := stage.Role(os.Args); played {
		os.Exit(code)
	}
	dir, err := os.MkdirTemp("", "errand-crash-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	common = stage.Prepare(dir)
	code := m.Run()
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}
