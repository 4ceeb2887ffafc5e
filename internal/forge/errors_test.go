package forge_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/state"
)

// TestExplain shows what people are told.
func TestExplain(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		status       int
		header       string
		body         any
		reason, hint string
		op           string
	}{
		"permission": {403, "issues=write", m{"message": "Resource not accessible by integration"},
			"GitHub does not allow it: Resource not accessible by integration.", "The App needs issues=write; an owner can accept it in the installation's settings.", "comment on octo/app#3: "},
		"permission unnamed": {403, "", m{"message": "Resource not accessible by integration"},
			"GitHub does not allow it: Resource not accessible by integration.", "An owner may have to accept the App's permissions in the installation's settings.", ""},
		"invalid": {422, "", m{"message": "Validation Failed", "errors": []m{{"field": "body", "code": "missing_field"}, {"message": "Too long."}}},
			"GitHub refused it: Validation Failed; body is missing field; Too long.", "", ""},
		"gone": {404, "", m{"message": "Not Found"}, "GitHub does not know it, or errand may not see it.",
			"Check that the App is installed on the repository and has accepted its permissions.", ""},
		"broken": {500, "", m{}, "GitHub answered with an error of its own (500).", "", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gh := newFake(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("X-Accepted-GitHub-Permissions", tt.header)
				answer(w, tt.status, tt.body)
			})
			f := newForge(t, gh.URL)
			err := errOf(f.CreateComment(t.Context(), testRepo, 3, "hello"))
			if class, _ := forge.Classify(err); tt.status == 403 && class == forge.ClassTemporary { // with a new token, too
				err = errOf(f.CreateComment(t.Context(), testRepo, 3, "hello"))
			}
			reason, hint := forge.Explain(err)
			if diff := cmp.Diff([]string{tt.reason, tt.hint}, []string{reason, hint}); diff != "" {
				t.Error(diff)
			}
			if !strings.HasPrefix(err.Error(), tt.op) {
				t.Errorf("error is %q", err)
			}
		})
	}
}

func TestErrorsOfOthers(t *testing.T) {
	t.Parallel()
	other := errors.New("disk full")
	if class, at := forge.Classify(other); class != forge.ClassUnknown || !at.IsZero() {
		t.Errorf("class %s at %s", class, at)
	}
	if reason, _ := forge.Explain(other); reason == "" {
		t.Error("no reason")
	}
	if class, _ := forge.Classify(&forge.LimitError{}); class != forge.ClassTemporary {
		t.Errorf("class %s", class)
	}
	moved := &forge.MovedError{Branch: "b", Want: "aaa"}
	if got := moved.Error(); got != "branch b is at no commit, expected aaa" {
		t.Errorf("got %q", got)
	}
}

func TestRepo(t *testing.T) {
	t.Parallel()
	task := &state.Task{TaskIssue: state.TaskIssue{Installation: 7, Repo: state.Repo{ID: 70, Owner: "octo", Name: "app"}}}
	if got := forge.RepoOf(task); got != testRepo {
		t.Errorf("got %+v", got)
	}
	if got := newForge(t, "https://git.example.org").GitURL(testRepo); got != "https://git.example.org/octo/app.git" {
		t.Errorf("got %s", got)
	}
}

func TestObjects(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	head := must(w.f.Head(t.Context(), w.repo, "main"))(t)
	tree := must(w.f.Tree(t.Context(), w.repo, head))(t)
	entry, ok := tree["dir/a.txt"]
	if !ok || entry.Mode != "100644" || len(tree) != 5 {
		t.Fatalf("got %+v", tree)
	}
	if got := must(w.f.Blob(t.Context(), w.repo, entry.ID))(t); string(got) != "a\n" {
		t.Errorf("got %q", got)
	}
}

func TestTreeOfAVeryLargeRepository(t *testing.T) {
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
	gh := newFake(t, func(w http.ResponseWriter, r *http.Request) {
		_, id, _ := strings.Cut(r.URL.RequestURI(), "/git/trees/")
		answer(w, 200, trees[id])
	})
	got := must(newForge(t, gh.URL).Tree(t.Context(), testRepo, "root"))(t)
	want := map[string]forge.TreeEntry{
		"a": {Mode: "100644", ID: "b-a"}, "big/x": {Mode: "100644", ID: "b-x"},
		"big/in/z": {Mode: "100644", ID: "b-z"}, "small/deep/y": {Mode: "100644", ID: "b-deep/y"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
