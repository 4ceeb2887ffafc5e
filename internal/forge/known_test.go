package forge_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/forge"
)

// TestTreesAreReadOnce: what is named by its content is asked for once, and what a publication makes of
// it needs no asking. What is remembered is what GitHub says.
func TestTreesAreReadOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := clone(t, w)
	c.git("rm", "--quiet", "old.txt")
	c.write("dir/new.txt", "new\n")
	c.commit("One")
	c.git("rm", "--quiet", "-r", "dir")
	c.write("dir", "a file now\n")
	c.commit("Two")
	cs := c.changeset()

	before := w.f.Calls(forge.ForTask)
	tree := must(w.f.Tree(t.Context(), w.repo, c.base))(t)
	delete(tree, "README.md") // the caller's copy
	if again := must(w.f.Tree(t.Context(), w.repo, c.base))(t); again["README.md"].ID == "" || w.f.Calls(forge.ForTask)-before > 2 {
		t.Errorf("%d calls, README.md is %v", w.f.Calls(forge.ForTask)-before, again["README.md"])
	}
	out := must(w.f.Commit(t.Context(), w.repo, cs, c.base, nil))(t)

	before = w.f.Calls(forge.ForTask)
	got := must(w.f.Tree(t.Context(), w.repo, out.Head))(t)
	if n := w.f.Calls(forge.ForTask) - before; n != 0 {
		t.Errorf("%d calls for what follows from the publication", n)
	}
	want := must(newForgeOf(t, w).Tree(t.Context(), w.repo, out.Head))(t) // one that knows nothing
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the tree (-as GitHub has it +as remembered):\n%s", diff)
	}
	other := w.repo
	other.ID++
	before = w.f.Calls(forge.ForTask)
	must(w.f.Tree(t.Context(), other, out.Head))(t)
	if w.f.Calls(forge.ForTask) == before {
		t.Error("what is known of one repository was told of another")
	}
}

// newForgeOf is another client of the same App.
func newForgeOf(t *testing.T, w *world) *forge.Forge {
	t.Helper()
	app := w.App()
	return newForge(t, w.BaseURL(), func(c *forge.Config) { c.AppID, c.PrivateKey = app.ID, app.PEM })
}
