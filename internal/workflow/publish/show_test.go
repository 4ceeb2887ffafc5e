package publish_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/workflow"
	"github.com/errand-bot/errand/internal/workflow/workflowtest"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/settings"
)

func TestChangesetIsShown(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	h := w.Building()
	w.Task.Settings.Publish = settings.PublishAfterApproval
	workflowtest.Check(t, os.Symlink("slug.go", filepath.Join(h.Dir, "link")))
	h.Commit(t, "Mend it\n\nAs asked.", map[string]string{
		"slug.go": "package slug\n\nfunc Slug() { mend() }\n", "README.md": "", "new/a.txt": "one\u202etwo\n", "raw.bin": "a\x00b",
		"key.txt": workflowtest.Secret + "\n", "there-and-back.txt": "x\n",
	})
	h.Git(t, "update-index", "--chmod=+x", "slug.go")
	h.Commit(t, "Tidy up", map[string]string{"there-and-back.txt": ""})
	w.Collected()
	p := w.Shown()
	want := []string{
		"    Mend it\n    \n    As asked.\n", "    Tidy up\n",
		"diff a/README.md b/README.md\ndeleted file\n--- a/README.md\n+++ b/README.md\n@@ -1 +0,0 @@\n-# slug\n",
		"diff a/link b/link\nnew symbolic link\n", "+slug.go\n",
		"new file\n--- a/new/a.txt\n+++ b/new/a.txt\n@@ -0,0 +1 @@\n+one⟨U+202E⟩two\n",
		"diff a/raw.bin b/raw.bin\nnew file\nnot shown line by line: 0 bytes (none) before, 3 bytes (",
		"-func Slug() {}\n+func Slug() { mend() }\n",
	}
	for _, s := range want {
		if !strings.Contains(p.Text, s) {
			t.Errorf("the diff lacks %q:\n%s", s, p.Text)
		}
	}
	for _, s := range []string{"there-and-back", workflowtest.Secret, "\u202e"} {
		if strings.Contains(p.Text, s) {
			t.Errorf("unexpected %q in the diff:\n%s", s, p.Text)
		}
	}
	stat := strings.Join(p.Publish.Stat, "\n")
	for _, s := range []string{"README.md: +0 −1, deleted", "slug.go: +1 −1", "link: +1 −0, new symbolic link", "raw.bin: +0 −0, new file"} {
		if !strings.Contains(stat, s) {
			t.Errorf("the summary lacks %q:\n%s", s, stat)
		}
	}
	if p.Publish.Cut != 0 || p.Publish.Tree != w.Task.Work.LocalTree || len(p.Files) != 6 {
		t.Errorf("got %+v of %v", p.Publish, p.Files)
	}
	if again := w.Do(state.JobShow); event.Of[event.DiffReady](again).Plan.Text != p.Text || event.Of[event.DiffReady](again).Plan.Publish.Digest != p.Publish.Digest {
		t.Error("a repeated diff differs")
	}
	w.Committed()
}

func TestLongDiffNeedsAPage(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]string{"without": "", "with": "https://errand.example/tasks/1"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t, func(c *workflow.Config) { c.StatusURL = func(*state.Task) string { return url } })
			h := w.Building()
			h.Commit(t, "Much", map[string]string{"much.txt": strings.Repeat("a line\n", 9000) + "the last line\n"})
			w.Collected()
			if url == "" {
				_, err := w.Try(state.JobShow)
				workflowtest.WantProblem(t, err, "config", true)
				return
			}
			p := w.Shown()
			f, err := w.Files.OpenDiff(p.Publish.Ref)
			workflowtest.Check(t, err)
			whole, err := io.ReadAll(f)
			workflowtest.Check(t, err)
			workflowtest.Check(t, f.Close())
			cut := strings.Count(string(whole), "\n") - strings.Count(p.Text, "\n")
			if len(p.Text) > 20_000 || p.Publish.Cut != cut || cut < 6000 || !strings.HasPrefix(string(whole), p.Text) || !strings.HasSuffix(string(whole), "+the last line\n") {
				t.Errorf("got %d of %d bytes and %d omitted lines, want %d", len(p.Text), len(whole), p.Publish.Cut, cut)
			}
		})
	}
}

// Changes that people did not approve are not published, whatever the task's state.
func TestOnlyApprovedChangesArePublished(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(w *workflowtest.World, p *state.Plan){
		"without approval":         func(w *workflowtest.World, p *state.Plan) { p.Publish.Approved = nil },
		"another one was approved": func(w *workflowtest.World, p *state.Plan) { w.Task.Work.Approved = "0badcafe" },
		"another tree":             func(w *workflowtest.World, p *state.Plan) { p.Publish.Tree = w.Task.Branch.BaseSHA },
		"the stored changeset was replaced": func(w *workflowtest.World, p *state.Plan) {
			cs, err := w.Files.LoadChangeset(w.Task.Work.Ref)
			workflowtest.Check(w.T, err)
			cs.Commits[0].Message = "Something else"
			_, err = w.Files.SaveChangeset(w.Task.Work.Run, cs)
			workflowtest.Check(w.T, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			h := w.Building()
			w.Task.Settings.Publish = settings.PublishAfterApproval
			h.Commit(t, "Mend it", map[string]string{"slug.go": "package slug\n"})
			w.Collected()
			spoil(w, w.Shown())
			for _, attempted := range []bool{false, true} {
				_, before := w.Calls()
				_, err := w.Try(state.JobCommit, func(j *state.Job) { j.Attempted = attempted })
				workflowtest.WantProblem(t, err, "internal", true)
				if _, after := w.Calls(); after != before {
					t.Errorf("got %d calls", after-before)
				}
			}
		})
	}
}

func TestApprovalOfChangesIsCheckedAtPublication(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	h := w.Building()
	w.Task.Settings.Publish = settings.PublishAfterApproval
	h.Commit(t, "Mend it", map[string]string{"slug.go": "package slug\n"})
	w.Collected()
	p := w.Shown()
	p.Publish.Approved.By = w.Person("bob")
	workflowtest.Check(t, w.Ada.SetPermission(workflowtest.RepoName, "bob", "read"))
	if e := w.Do(state.JobCommit); e.Kind() != event.KindApprovalRejected || event.Of[event.ApprovalRejected](e).Rejection != state.RejectedRevoked || e.Candidate().Hash != p.Hash {
		t.Fatalf("got event %s", fmt.Sprintf("%+v", e))
	}
	workflowtest.Check(t, w.Ada.SetPermission(workflowtest.RepoName, "bob", "write"))
	said := w.Said(p, "bob", "@errand approve")
	*p.Publish.Approved = said.Approval
	workflowtest.Check(t, w.As("bob").EditComment(workflowtest.RepoName, said.Comment, "Wait."))
	if e := w.Do(state.JobCommit); e.Kind() != event.KindApprovalRejected || event.Of[event.ApprovalRejected](e).Rejection != state.RejectedCommentEdited || e.Candidate().Hash != p.Hash {
		t.Fatalf("with an edited command: got event %+v", e)
	}
	if e := w.Do(state.JobCommit, workflowtest.Again); e.Kind() != event.KindCommitted {
		t.Errorf("after the start: got event %+v", e)
	}
}
