package leak_test

import (
	"flag"
	"os"
	"runtime/debug"
	"testing"
)

// atOnce is how many seeds are played side by side: they mostly wait for the disk.
const atOnce = "8"

// TestMain has seeds wait side by side, and their garbage, which is much and short-lived, collected less often.
func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = f.Value.Set(atOnce)
	}
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}
