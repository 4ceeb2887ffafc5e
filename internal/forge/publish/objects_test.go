package publish_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/forge/forgetest"
)

func TestObjects(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	head := forgetest.Must(w.Forge.Head(t.Context(), w.Repo, "main"))(t)
	tree := forgetest.Must(w.Forge.Tree(t.Context(), w.Repo, head))(t)
	entry, ok := tree["dir/a.txt"]
	if !ok || entry.Mode != "100644" || len(tree) != 5 {
		t.Fatalf("got %+v", tree)
	}
	if got := forgetest.Must(w.Forge.Blob(t.Context(), w.Repo, entry.ID))(t); string(got) != "a\n" {
		t.Errorf("got %q", got)
	}
}

func TestTreeInSeveralRequests(t *testing.T) {
	t.Parallel()
	blob := func(path string) m { return m{"path": path, "mode": "100644", "type": "blob", "sha": "b-" + path} }
	folder := func(path, id string) m { return m{"path": path, "mode": "040000", "type": "tree", "sha": id} }
	trees := map[string]m{
		"root?recursive=1": {"truncated": true, "tree": []m{blob("a")}},
		"root":             {"tree": []m{blob("a"), folder("big", "t1"), folder("small", "t2")}},
		"t1?recursive=1":   {"truncated": true, "tree": []m{}},
		"t1":               {"tree": []m{folder("in", "t3"), blob("x")}},
		"t2?recursive=1":   {"tree": []m{folder("deep", "t9"), blob("deep/y")}},
		"t3?recursive=1":   {"tree": []m{blob("z")}},
	}
	gh := forgetest.NewFake(t, func(w http.ResponseWriter, r *http.Request) {
		_, id, _ := strings.Cut(r.URL.RequestURI(), "/git/trees/")
		forgetest.Answer(w, 200, trees[id])
	})
	got := forgetest.Must(forgetest.New(t, gh.URL).Tree(t.Context(), forgetest.Repo(), "root"))(t)
	want := map[string]forge.TreeEntry{
		"a": {Mode: "100644", ID: "b-a"}, "big/x": {Mode: "100644", ID: "b-x"},
		"big/in/z": {Mode: "100644", ID: "b-z"}, "small/deep/y": {Mode: "100644", ID: "b-deep/y"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
