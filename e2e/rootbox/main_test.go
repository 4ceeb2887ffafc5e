//go:build linux

package rootbox_test

import (
	"os"
	"testing"

	"github.com/errand-bot/errand/e2e/stage"
)

// TestMain is also the agent, which boxes find at this program's own path.
func TestMain(m *testing.M) {
	if code, played := stage.Role(os.Args); played {
		os.Exit(code)
	}
	os.Exit(m.Run())
}
