package work_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/runner/work"
)

// TestSeed: objects in a base image's copy of the repository are imported from it, and only newer ones are fetched.
func TestSeed(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		at    func(o origin) string // below the folder of copies
		spoil string                // done to the copy
		used  bool
	}{
		"there":           {at: seedPath, used: true},
		"another's":       {at: func(origin) string { return "acme/other.git" }},
		"broken":          {at: seedPath, spoil: "rm -r objects; mkdir objects"},
		"no repository":   {at: seedPath, spoil: "rm -r HEAD refs config"},
		"a branch is bad": {at: seedPath, spoil: "echo nonsense >refs/heads/bad"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, home := newOrigin(t), t.TempDir()
			copied := filepath.Join(home, ".errand/seed", tt.at(o))
			if err := os.MkdirAll(filepath.Dir(copied), 0o755); err != nil {
				t.Fatal(err)
			}
			git(t, o.dir(), "clone", "-q", "--bare", ".", copied)
			extra := filepath.Join(t.TempDir(), "extra") // what only the copy has says whether it was used
			git(t, o.dir(), "clone", "-q", copied, extra)
			script(t, extra, "git commit -q --allow-empty -m Extra && git push -q origin HEAD:refs/heads/only-here")
			only := git(t, extra, "rev-parse", "HEAD")
			if tt.spoil != "" {
				script(t, copied, tt.spoil)
			}
			script(t, o.dir(), "echo newer >>README && git commit -qam Third")
			head := git(t, o.dir(), "rev-parse", "HEAD")

			dir := filepath.Join(home, "work")
			place, err := work.Prepare(testContext(t), work.PrepareSpec{Dir: dir, Source: work.Source{URL: o.url, Ref: "refs/heads/main"}, Branch: "b", Base: head})
			if err != nil || place.Head != head || git(t, dir, "status", "--porcelain") != "" {
				t.Fatalf("%+v, %v", place, err)
			}
			if refs := git(t, dir, "for-each-ref", "--format=%(refname)"); strings.Contains(refs, "seed") {
				t.Errorf("left over: %s", refs)
			}
			found := strings.Contains(git(t, dir, "cat-file", "--batch-check=%(objectname)", "--batch-all-objects", "--unordered"), only)
			if found != tt.used {
				t.Errorf("the copy was used: %t, want %t", found, tt.used)
			}
		})
	}
}

// seedPath is where the copy of an origin is looked for.
func seedPath(o origin) string {
	dir := strings.ToLower(o.dir())
	return filepath.Join(filepath.Base(filepath.Dir(dir)), filepath.Base(dir)+".git")
}
