package workflow_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/workflow"
	"github.com/errand-bot/errand/state"
)

// shown takes the job show and stores its revision as posted and approved by ada, as the transition table
// and people do.
func (w *world) shown() *state.Plan {
	w.t.Helper()
	e := w.do(state.JobShow)
	if e.Kind != state.EventShown || e.Run != w.task.Work.Run || e.Plan == nil || e.Plan.Publish == nil {
		w.t.Fatalf("event %+v", e)
	}
	p := *e.Plan
	p.Kind, p.Revision, p.Comment, p.CommentNode = state.PlanPublish, 1, 4711, "none"
	p.Hash = state.PlanHash(p)
	p.Publish.Approved = &state.Approval{Kind: p.Kind, Hash: p.Hash, By: w.person("ada"), Permission: state.PermissionAdmin, Via: state.ViaCommand}
	w.task.Plans, w.task.Work.Approved = []state.Plan{p}, p.Hash
	return &w.task.Plans[0]
}

func TestAChangesetIsShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.building()
	w.task.Settings.Publish = state.PublishAfterApproval
	check(t, os.Symlink("slug.go", filepath.Join(h.dir, "link")))
	h.commit(t, "Mend it\n\nAs asked.", map[string]string{
		"slug.go": "package slug\n\nfunc Slug() { mend() }\n", "README.md": "", "new/a.txt": "one\u202etwo\n", "raw.bin": "a\x00b",
		"key.txt": secret + "\n", "there-and-back.txt": "x\n",
	})
	h.run(t, h.dir, "update-index", "--chmod=+x", "slug.go")
	h.commit(t, "Tidy up", map[string]string{"there-and-back.txt": ""})
	w.collected()
	p := w.shown()
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
	for _, s := range []string{"there-and-back", secret, "\u202e"} {
		if strings.Contains(p.Text, s) {
			t.Errorf("the diff has %q:\n%s", s, p.Text)
		}
	}
	stat := strings.Join(p.Publish.Stat, "\n")
	for _, s := range []string{"README.md: +0 −1, deleted", "slug.go: +1 −1", "link: +1 −0, new symbolic link", "raw.bin: +0 −0, new file"} {
		if !strings.Contains(stat, s) {
			t.Errorf("the summary lacks %q:\n%s", s, stat)
		}
	}
	if p.Publish.Cut != 0 || p.Publish.Tree != w.task.Work.LocalTree || len(p.Files) != 6 {
		t.Errorf("%+v of %v", p.Publish, p.Files)
	}
	if again := w.do(state.JobShow); again.Plan.Text != p.Text || again.Plan.Publish.Digest != p.Publish.Digest {
		t.Error("shown again, it is another diff")
	}
	w.committed()
}

func TestALongDiffNeedsAPage(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]string{"without": "", "with": "https://errand.example/tasks/1"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(c *workflow.Config) { c.StatusURL = func(*state.Task) string { return url } })
			h := w.building()
			h.commit(t, "Much", map[string]string{"much.txt": strings.Repeat("a line\n", 9000) + "the last line\n"})
			w.collected()
			if url == "" {
				_, err := w.try(state.JobShow)
				wantProblem(t, err, "config", true)
				return
			}
			p := w.shown()
			f, err := w.files.OpenDiff(p.Publish.Ref)
			check(t, err)
			whole, err := io.ReadAll(f)
			check(t, err)
			check(t, f.Close())
			cut := strings.Count(string(whole), "\n") - strings.Count(p.Text, "\n")
			if len(p.Text) > 20_000 || p.Publish.Cut != cut || cut < 6000 || !strings.HasPrefix(string(whole), p.Text) || !strings.HasSuffix(string(whole), "+the last line\n") {
				t.Errorf("%d bytes shown of %d, %d lines cut, not %d", len(p.Text), len(whole), p.Publish.Cut, cut)
			}
		})
	}
}

// What people did not approve is not published, whatever the task says.
func TestOnlyApprovedChangesArePublished(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(w *world, p *state.Plan){
		"nobody approved":      func(w *world, p *state.Plan) { p.Publish.Approved = nil },
		"another was approved": func(w *world, p *state.Plan) { w.task.Work.Approved = "0badcafe" },
		"another tree":         func(w *world, p *state.Plan) { p.Publish.Tree = w.task.Branch.BaseSHA },
		"the stored changeset was replaced": func(w *world, p *state.Plan) {
			cs, err := w.files.LoadChangeset(w.task.Work.Ref)
			check(w.t, err)
			cs.Commits[0].Message = "Something else"
			_, err = w.files.SaveChangeset(w.task.Work.Run, cs)
			check(w.t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			h := w.building()
			w.task.Settings.Publish = state.PublishAfterApproval
			h.commit(t, "Mend it", map[string]string{"slug.go": "package slug\n"})
			w.collected()
			spoil(w, w.shown())
			for _, attempted := range []bool{false, true} {
				_, before := w.Calls()
				_, err := w.try(state.JobCommit, func(j *state.Job) { j.Attempted = attempted })
				wantProblem(t, err, "internal", true)
				if _, after := w.Calls(); after != before {
					t.Errorf("it took %d calls", after-before)
				}
			}
		})
	}
}

func TestAnApprovalOfChangesHasToHoldWhenTheyArePublished(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.building()
	w.task.Settings.Publish = state.PublishAfterApproval
	h.commit(t, "Mend it", map[string]string{"slug.go": "package slug\n"})
	w.collected()
	p := w.shown()
	p.Publish.Approved.By = w.person("bob")
	check(t, w.ada.SetPermission(full, "bob", "read"))
	if e := w.do(state.JobCommit); e.Kind != state.EventNoApproval || e.Detail != state.NotRevoked || e.Candidate.Hash != p.Hash {
		t.Fatalf("event %s", fmt.Sprintf("%+v", e))
	}
	check(t, w.ada.SetPermission(full, "bob", "write"))
	said := w.said(p, "bob", "@errand approve")
	*p.Publish.Approved = said.Approval
	check(t, w.As("bob").EditComment(full, said.Comment, "Wait."))
	if e := w.do(state.JobCommit); e.Kind != state.EventNoApproval || e.Detail != state.NotReworded || e.Candidate.Hash != p.Hash {
		t.Fatalf("with the command edited: event %+v", e)
	}
	if e := w.do(state.JobCommit, again); e.Kind != state.EventCommitted {
		t.Errorf("after it began: event %+v", e)
	}
}
