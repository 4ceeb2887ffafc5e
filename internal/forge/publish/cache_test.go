package publish_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/forge/forgetest"
)

// TestTreesAreCached checks that a tree is read once, that the tree of a published commit is not read at all, and that
// the cached tree equals GitHub's.
func TestTreesAreCached(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	c := clone(t, w)
	c.git("rm", "--quiet", "old.txt")
	c.write("dir/new.txt", "new\n")
	c.commit("One")
	c.git("rm", "--quiet", "-r", "dir")
	c.write("dir", "a file now\n")
	c.commit("Two")
	cs := c.changeset()

	before := w.Forge.Calls(forge.ForTask)
	tree := forgetest.Must(w.Forge.Tree(t.Context(), w.Repo, c.base))(t)
	delete(tree, "README.md") // the caller's copy
	if again := forgetest.Must(w.Forge.Tree(t.Context(), w.Repo, c.base))(t); again["README.md"].ID == "" || w.Forge.Calls(forge.ForTask)-before > 2 {
		t.Errorf("%d calls, README.md is %v", w.Forge.Calls(forge.ForTask)-before, again["README.md"])
	}
	out := forgetest.Must(w.Forge.CreateCommits(t.Context(), w.Repo, cs, c.base, nil))(t)

	before = w.Forge.Calls(forge.ForTask)
	got := forgetest.Must(w.Forge.Tree(t.Context(), w.Repo, out.Head))(t)
	if n := w.Forge.Calls(forge.ForTask) - before; n != 0 {
		t.Errorf("got %d calls for the tree of the published commit", n)
	}
	want := forgetest.Must(w.Another(t).Tree(t.Context(), w.Repo, out.Head))(t) // with an empty cache
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tree (-GitHub +cache):\n%s", diff)
	}
	other := w.Repo
	other.ID++
	before = w.Forge.Calls(forge.ForTask)
	forgetest.Must(w.Forge.Tree(t.Context(), other, out.Head))(t)
	if w.Forge.Calls(forge.ForTask) == before {
		t.Error("the tree of one repository was returned for another")
	}
}
