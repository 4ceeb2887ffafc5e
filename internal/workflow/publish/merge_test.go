package publish_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/workflow"
	"github.com/errand-bot/errand/internal/workflow/workflowtest"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/settings"
)

// refused lists the rules and paths of an event's refusals.
func refused(e event.Event) (list []string) {
	for _, r := range event.Of[event.Collected](e).Refusals {
		list = append(list, strings.TrimSpace(r.Rule+" "+r.Path))
	}
	slices.Sort(list)
	return list
}

// A merge may contain the changes of the base; changes that it drops are checked and shown like any change.
func TestMergeIsComparedWithBothSides(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		merge   func(w *workflowtest.World, h *workflowtest.Host, newer string)
		refused []string // rule and path
		shown   []string // in the diff for approval
		hidden  []string
		note    string
	}{
		"cleanly": {
			merge: func(w *workflowtest.World, h *workflowtest.Host, newer string) {
				h.Git(w.T, "merge", "--quiet", "--no-edit", newer)
			},
			shown:  []string{"+a\n"},
			hidden: []string{"diff a/gained.txt", "diff a/slug.go", "ci.yml"},
		},
		"with the strategy ours": {
			merge: func(w *workflowtest.World, h *workflowtest.Host, newer string) {
				h.Git(w.T, "merge", "--quiet", "--no-edit", "-s", "ours", newer)
			},
			refused: []string{"protected-paths .github/workflows/ci.yml"},
			shown:   []string{"diff a/gained.txt b/gained.txt\ndeleted file\n", "-gained\n", "-func Slug() { better() }\n", "+func Slug() {}\n", "-on: push\n"},
			note:    "leaves out what main changed in .github/workflows/ci.yml, gained.txt, slug.go",
		},
		"ours except the workflow": {
			merge: func(w *workflowtest.World, h *workflowtest.Host, newer string) {
				h.Git(w.T, "merge", "--quiet", "--no-edit", "--no-commit", "-s", "ours", newer)
				h.Git(w.T, "checkout", newer, "--", ".github")
				h.Git(w.T, "commit", "--quiet", "-m", "Merge")
			},
			shown:  []string{"deleted file\n", "-gained\n", "+func Slug() {}\n"},
			hidden: []string{"ci.yml"},
			note:   "leaves out what main changed in gained.txt, slug.go",
		},
		"with the strategy theirs": {
			merge: func(w *workflowtest.World, h *workflowtest.Host, newer string) {
				h.Git(w.T, "merge", "--quiet", "--no-edit", "--no-commit", "-s", "ours", newer)
				h.Git(w.T, "rm", "--quiet", "-r", ".")
				h.Git(w.T, "checkout", newer, "--", ".")
				h.Git(w.T, "commit", "--quiet", "-m", "Merge")
			},
			hidden: []string{"diff a/"},
		},
		"with a change of its own": {
			merge: func(w *workflowtest.World, h *workflowtest.Host, newer string) {
				h.Git(w.T, "merge", "--quiet", "--no-edit", "--no-commit", "--no-ff", newer)
				h.Commit(w.T, "Merge", map[string]string{".github/workflows/ci.yml": "on: pull_request_target\n"})
			},
			refused: []string{"protected-paths .github/workflows/ci.yml"},
			shown:   []string{"-on: push\n+on: pull_request_target\n"},
		},
		"with another mode": {
			merge: func(w *workflowtest.World, h *workflowtest.Host, newer string) {
				h.Git(w.T, "merge", "--quiet", "--no-edit", "--no-commit", "--no-ff", newer)
				workflowtest.Check(w.T, os.Chmod(filepath.Join(h.Dir, ".github/workflows/ci.yml"), 0o755))
				h.Git(w.T, "commit", "--quiet", "-a", "-m", "Merge")
			},
			refused: []string{"protected-paths .github/workflows/ci.yml"},
			shown:   []string{"file becomes executable file\n"},
		},
		"completely, and dropped by a later commit": {
			merge: func(w *workflowtest.World, h *workflowtest.Host, newer string) {
				h.Git(w.T, "merge", "--quiet", "--no-edit", newer)
				h.Commit(w.T, "Tidy up", map[string]string{"gained.txt": "", ".github/workflows/ci.yml": ""})
			},
			refused: []string{"protected-paths .github/workflows/ci.yml"},
			shown:   []string{"-gained\n", "-on: push\n"},
		},
		"with ours, and restored by a later commit": {
			merge: func(w *workflowtest.World, h *workflowtest.Host, newer string) {
				h.Git(w.T, "merge", "--quiet", "--no-edit", "-s", "ours", newer)
				h.Git(w.T, "checkout", newer, "--", ".")
				h.Git(w.T, "commit", "--quiet", "-m", "Restore")
			},
			refused: []string{"protected-paths .github/workflows/ci.yml", "protected-paths .github/workflows/ci.yml"}, // by each commit
			hidden:  []string{"diff a/gained.txt", "diff a/slug.go", "ci.yml"},
		},
		"in conflict, in favor of the branch": {
			merge: func(w *workflowtest.World, h *workflowtest.Host, newer string) {
				h.Commit(w.T, "Mine, too", map[string]string{"slug.go": "package slug\n\nfunc Slug() { mine() }\n"})
				h.Git(w.T, "merge", "--quiet", "--no-edit", "-X", "ours", newer)
			},
			shown:  []string{"-func Slug() { better() }\n+func Slug() { mine() }\n"},
			hidden: []string{"diff a/gained.txt"},
			note:   "leaves out what main changed in slug.go",
		},
		"in conflict, in favor of the base": {
			merge: func(w *workflowtest.World, h *workflowtest.Host, newer string) {
				h.Commit(w.T, "Mine, too", map[string]string{"slug.go": "package slug\n\nfunc Slug() { mine() }\n"})
				h.Git(w.T, "merge", "--quiet", "--no-edit", "-X", "theirs", newer)
			},
			hidden: []string{"diff a/slug.go"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t, func(c *workflow.Config) { c.StatusURL = func(*state.Task) string { return "https://errand.example" } })
			h, newer := w.Merging()
			c.merge(w, h, newer)
			e := w.Collected()
			if got := refused(e); !slices.Equal(got, c.refused) {
				t.Errorf("got refusals %q, want %q", got, c.refused)
			}
			if notes := strings.Join(e.Work().Notes, "\n"); !strings.Contains(notes, c.note) || c.note == "" && notes != "" {
				t.Errorf("got notes %q, want %q", notes, c.note)
			}
			p := w.Shown()
			for _, s := range c.shown {
				if !strings.Contains(p.Text, s) {
					t.Errorf("the diff lacks %q:\n%s", s, p.Text)
				}
			}
			for _, s := range c.hidden {
				if strings.Contains(p.Text, s) {
					t.Errorf("unexpected %q in the diff:\n%s", s, p.Text)
				}
			}
		})
	}
}

// A merge that drops people's work on the branch is also shown.
func TestMergeThatDropsPeoplesWorkIsShown(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	w.OpenPull()
	w.Task.Settings.MergeCommits, w.Task.Settings.Publish = true, settings.PublishAfterApproval
	w.Task.Branch.Head = w.Push("bob", w.Task.Branch.Name, map[string]string{"bob.txt": "mine\n"})
	newer := w.Push("ada", "main", map[string]string{"gained.txt": "gained\n", "slug.go": "package slug\n\nfunc Slug() { better() }\n"})
	w.Task.Work, w.Task.Branch.Root = &state.Work{Run: "r-1"}, w.Task.Branch.Head
	h := w.Host
	h.Checkout(t, w.Task.Branch.Head)
	h.Git(t, "merge", "--quiet", "--no-edit", "--no-commit", "-s", "ours", newer)
	h.Git(t, "rm", "--quiet", "-r", ".")
	h.Git(t, "checkout", newer, "--", ".")
	h.Write(t, map[string]string{"slug.go": "package slug\n\nfunc Slug() { neither() }\n"})
	h.Git(t, "commit", "--quiet", "-a", "-m", "Merge")
	e := w.Collected()
	if len(event.Of[event.Collected](e).Refusals) > 0 {
		t.Fatalf("got refusals %+v", event.Of[event.Collected](e).Refusals)
	}
	p := w.Shown()
	for _, s := range []string{
		"diff a/bob.txt b/bob.txt\ndeleted file\n", "-mine\n", // only on the branch
		"compared with the base branch; both sides of the merge changed it\n", "-func Slug() { better() }\n+func Slug() { neither() }\n",
		"compared with the branch before the merge; both sides of the merge changed it\n", "-func mend() {}\n",
	} {
		if !strings.Contains(p.Text, s) {
			t.Errorf("the diff lacks %q:\n%s", s, p.Text)
		}
	}
	if strings.Contains(p.Text, "gained") || !slices.Equal(p.Files, []string{"bob.txt", "slug.go"}) {
		t.Errorf("got files %q of\n%s", p.Files, p.Text)
	}
	w.Committed()
}

// In a round that resolves a conflict with the base, the agent may merge the commit that it was told, whatever the repository's settings and
// however far the base has moved since, or the newest one. It may merge nothing else.
func TestMergeThatResolvesAConflict(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		allows bool // merges, by the settings
		told   bool
		moved  bool // the agent merges a newer commit of the base
		other  bool // or one of another branch
		want   []string
	}{
		"as told":                       {told: true},
		"as told, by the settings, too": {allows: true, told: true},
		"newer":                         {told: true, moved: true},
		"another branch":                {told: true, other: true, want: []string{"protected-paths .github/workflows/ci.yml"}}, // as one commit
		"not told":                      {want: []string{"protected-paths .github/workflows/ci.yml"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			h, told := w.Merging()
			w.Task.Settings.MergeCommits = c.allows
			h.Commit(w.T, "Mine, too", map[string]string{"slug.go": "package slug\n\nfunc Slug() { mine() }\n"})
			if c.told {
				w.Task.Feedback = []state.Feedback{{ID: "base:" + told, Kind: state.FeedbackConflict, Base: told, TakenBy: "r-1"}}
			}
			newest := w.Push("ada", "main", map[string]string{"newer.txt": "newer\n"})
			merged := told
			if c.moved {
				merged = newest
			}
			if c.other {
				_, err := w.Ada.PushCommit(workflowtest.RepoName, simgithub.Commit{Branch: "other", From: "main", Message: "Other", Files: map[string]string{"other.txt": "other\n"}})
				workflowtest.Check(w.T, err)
				merged = w.Head("other")
			}
			h.Git(w.T, "fetch", "--quiet", "origin")
			h.Git(w.T, "merge", "--quiet", "--no-edit", "-X", "ours", merged)
			e := w.Collected()
			if got := refused(e); !slices.Equal(got, c.want) {
				t.Errorf("got refusals %q, want %q", got, c.want)
			}
			if len(c.want) == 0 && e.Work().Commits != 3 {
				t.Errorf("got %d commits, want the merge and two more", e.Work().Commits)
			}
		})
	}
}
