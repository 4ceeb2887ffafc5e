//go:build linux

package rootbox_test

import (
	"flag"
	"os"
	"testing"

	"github.com/errand-bot/errand/e2e/rootbox"
	"github.com/errand-bot/errand/e2e/stage"
)

// atOnce is how many tests run side by side: they mostly wait for boxes to boot.
const atOnce = "4"

// TestMain is also the agent, which boxes find at this program's own path.
func TestMain(m *testing.M) {
	if code, played := stage.Role(os.Args); played {
		os.Exit(code)
	}
	flag.Parse()
	if f := flag.Lookup("test.parallel"); os.Getenv(rootbox.Full) != "" {
		_ = f.Value.Set(atOnce)
	}
	os.Exit(m.Run())
}
