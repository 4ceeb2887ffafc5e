//go:build linux

package rootbox_test

import (
	"flag"
	"os"
	"testing"

	"github.com/errand-bot/errand/e2e/rootbox"
	"github.com/errand-bot/errand/e2e/stage"
)

// atOnce is the number of parallel tests, which mostly wait for boxes to boot.
const atOnce = "4"

// TestMain also runs the agent, which boxes find at this program's path.
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
