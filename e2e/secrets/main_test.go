//go:build linux

package secrets_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/errand-bot/errand/e2e/stage"
)

// begun is the start of this program, before any secret was created.
var begun = time.Now()

// common holds the environment of all worlds, set once by TestMain.
var common stage.Shared

// TestMain also runs the agent and, on a VM, the search for secrets.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "look" {
		if err := look(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if code, played := stage.Role(os.Args); played {
		os.Exit(code)
	}
	dir, err := os.MkdirTemp("", "errand-secrets-")
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
