package git

import "testing"

func TestValidRef(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"refs/heads/main": true, "refs/heads/errand/issue-1": true, "refs/tags/v1.0": true, "heads/main": false,
		"refs/heads": false, "refs/heads/a..b": false, "refs/heads/a.lock": false, "refs/heads/.a": false,
		"refs/heads/a b": false, "refs/heads/a\n": false, "refs/heads/a/": false, "": false, "refs/heads/-x": true,
	} {
		if got := ValidRef(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}
