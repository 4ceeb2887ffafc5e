package publish_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/forge/forgetest"
)

// TestTreesAreReadOnce: what is named by its content is asked for once, and what a publication makes of
// it needs no asking. What is remembered is what GitHub says.
func TestTreesAreReadOnce(t *testing.T) {
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
		t.Errorf("%d calls for what follows from the publication", n)
	}
	want := forgetest.Must(w.Another(t).Tree(t.Context(), w.Repo, out.Head))(t) // one that knows nothing
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the tree (-as GitHub has it +as remembered):\n%s", diff)
	}
	other := w.Repo
	other.ID++
	before = w.Forge.Calls(forge.ForTask)
	forgetest.Must(w.Forge.Tree(t.Context(), other, out.Head))(t)
	if w.Forge.Calls(forge.ForTask) == before {
		t.Error("what is known of one repository was told of another")
	}
}
