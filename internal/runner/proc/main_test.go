package proc

import (
	"os"
	"testing"
)

// TestMain lets the test binary be process 1 of a namespace.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == InitCommand {
		os.Exit(Init(os.Args[2:]))
	}
	os.Exit(m.Run())
}
