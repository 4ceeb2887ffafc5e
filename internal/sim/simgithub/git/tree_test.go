package git

import (
	"strings"
	"testing"
)

func FuzzTreePaths(f *testing.F) {
	f.Add("a/b")
	f.Add("../x")
	f.Add(".GIT/config")
	f.Fuzz(func(t *testing.T, path string) {
		if !validPath(path) {
			return
		}
		for part := range strings.SplitSeq(path, "/") {
			if part == "" || part == "." || part == ".." || strings.EqualFold(part, ".git") {
				t.Errorf("got no error for %q", path)
			}
		}
	})
}
