// Package heavytest marks tests that take minutes, or that need programs which are not everywhere.
//
// Such a test is called TestHeavy… and begins with [Mark], so that `go test` skips it, with the reason, and `make test-full`
// finds it by its name. It is for tests only. Start reading at Mark.
package heavytest

import (
	"os"
	"testing"
)

// Var is the environment variable that asks for heavy tests.
const Var = "ERRAND_TEST_FULL"

// Mark skips the test unless heavy tests are asked for.
func Mark(t testing.TB) {
	t.Helper()
	if os.Getenv(Var) == "" {
		t.Skip("a heavy test: `make test-full` plays it, and so does go test with " + Var + "=1")
	}
}
