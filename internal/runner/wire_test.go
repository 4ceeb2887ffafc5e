package runner_test

import (
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/runner"
)

func TestCheckID(t *testing.T) {
	t.Parallel()
	for id, valid := range map[string]bool{
		"1009-1-1": true, "a": true, "0": true, "Z.9_x-": true, strings.Repeat("a", 128): true,
		"": false, strings.Repeat("a", 129): false, ".": false, "..": false, ".a": false, "-a": false, "_a": false,
		"a/b": false, "a b": false, "a\n": false, "a\x00": false, "é": false, "aé": false, "a\xff": false, "\xff": false,
	} {
		if err := runner.CheckID(id); (err == nil) != valid {
			t.Errorf("%q: got %v, want valid: %t", id, err, valid)
		}
	}
}
