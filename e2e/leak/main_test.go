package leak_test

import (
	"flag"
	"os"
	"runtime/debug"
	"testing"
)

// atOnce is the number of seeds that are played in parallel; they mostly wait for the disk.
const atOnce = "8"

// TestMain raises the number of parallel tests, and collects garbage less often, because the seeds produce much
// short-lived garbage.
func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = f.Value.Set(atOnce)
	}
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}
