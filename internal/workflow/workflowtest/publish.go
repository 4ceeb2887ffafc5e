package workflowtest

import (
	"fmt"
	"testing"

	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/settings"
)

// Large commits a pointer at a path, and keeps its content in the checkout as the filter does.
func (h *Host) Large(t *testing.T, path, content string) changeset.Pointer {
	t.Helper()
	p, text := changeset.PointerTo([]byte(content))
	h.Write(t, map[string]string{fmt.Sprintf(".git/lfs/objects/%s/%s/%s", p.OID[:2], p.OID[2:4], p.OID): content})
	h.Commit(t, "Add "+path, map[string]string{path: text})
	return p
}

// Merging creates an agent's checkout at the base, which has changed since: slug.go was changed, README.md deleted, and
// a workflow and gained.txt added.
func (w *World) Merging() (h *Host, newer string) {
	w.T.Helper()
	w.Task.Settings.MergeCommits, w.Task.Settings.Publish = true, settings.PublishAfterApproval
	h = w.Building()
	newer = w.Push("ada", "main", map[string]string{
		"slug.go": "package slug\n\nfunc Slug() { better() }\n", ".github/workflows/ci.yml": "on: push\n", "gained.txt": "gained\n",
	})
	h.Git(w.T, "fetch", "--quiet", "origin")
	h.Commit(w.T, "Mine", map[string]string{"a.txt": "a\n"})
	return h, newer
}

// Building creates an agent's checkout at the base, after the end of its run.
func (w *World) Building() *Host {
	w.T.Helper()
	w.Task.Phase, w.Task.Branch.BaseSHA = state.PhaseImplementing, w.Head("main")
	w.Task.Work = &state.Work{Run: "r-1", Summary: "Mended it.", Text: "Mended it."}
	w.Host.Checkout(w.T, w.Task.Branch.BaseSHA)
	return w.Host
}

// Collected runs the job collect and stores its result like the transition table.
func (w *World) Collected() event.Event {
	w.T.Helper()
	e := w.Do(state.JobCollect)
	if e.Kind() != event.KindCollected {
		w.T.Fatalf("event %s", e.Kind())
	}
	if e.Work() != nil {
		w.Task.Work = e.Work()
	}
	return e
}

// Committed does the same with the job commit.
func (w *World) Committed() *state.Work {
	w.T.Helper()
	e := w.Do(state.JobCommit)
	if e.Kind() != event.KindCommitted || e.Work().Head == "" {
		w.T.Fatalf("event %+v", e)
	}
	w.Task.Work = e.Work()
	return e.Work()
}

// Published creates a branch with a commit that is ready for its pull request.
func (w *World) Published() {
	w.T.Helper()
	w.Task.Phase = state.PhaseImplementing
	w.Task.Branch.Head = w.Push("bob", w.Task.Branch.Name, map[string]string{"slug.go": "package slug\n"})
	w.Task.Work = &state.Work{
		Run: "r-1", Head: w.Task.Branch.Head, Text: "Mended in " + LocalID + ". The key is " + Secret + ".", Summary: "Mended.",
		IDs: map[string]string{LocalID: w.Task.Branch.Head},
	}
}

// Reviewed creates a pull request with two threads by ada, and a run that has taken their feedback.
func (w *World) Reviewed() (first, second *simgithub.Thread) {
	w.T.Helper()
	p := w.OpenPull()
	_, err := w.Ada.Review(RepoName, p.Number, simgithub.NewReview{Event: "REQUEST_CHANGES", Comments: []simgithub.NewReviewComment{
		{Path: "slug.go", Line: 3, Body: "Why mend?"}, {Path: "slug.go", Line: 5, Body: "Rename it. " + Secret},
	}})
	Check(w.T, err)
	th := w.IssueAt(p.Number).Pull.Threads
	return th[0], th[1]
}

// Rounded gathers the feedback and begins the round of the answers.
func (w *World) Rounded() {
	w.T.Helper()
	w.Task.Feedback = event.Of[event.Gathered](w.Do(state.JobGather)).Feedback
	for i := range w.Task.Feedback {
		w.Task.Feedback[i].TakenBy = "r-2"
	}
	w.Task.Phase, w.Task.Round = state.PhaseAddressingReview, 1
	w.Task.Work = &state.Work{Run: "r-2", Head: w.Task.Branch.Head, Summary: "All done in " + LocalID[:8],
		IDs: map[string]string{LocalID: w.Task.Branch.Head}}
}

// Answered runs the jobs answer of a round, the second of which submits the review, and stores the review like the
// transition table. It returns the last event.
func (w *World) Answered(change ...func(*state.Job)) event.Event {
	w.T.Helper()
	e := w.Do(state.JobAnswer, change...)
	if review := event.Of[event.ThreadsAnswered](e).Review; review != "" {
		w.Task.Work.Review = review
		e = w.Do(state.JobAnswer)
	}
	return e
}

// OwnReviews lists errand's submitted reviews of the task's pull request.
func (w *World) OwnReviews() (list []*simgithub.Review) {
	w.T.Helper()
	for _, v := range w.IssueAt(w.Task.PR.Number).Pull.Reviews {
		if v.Author == w.App().BotLogin {
			list = append(list, v)
		}
	}
	return list
}

// Answers lists errand's submitted answers in a thread.
func (w *World) Answers(top int64) (list []string) {
	w.T.Helper()
	for _, th := range w.IssueAt(w.Task.PR.Number).Pull.Threads {
		for _, c := range th.Comments {
			if th.Comments[0].ID == top && c.Author == w.App().BotLogin {
				list = append(list, c.Body)
			}
		}
	}
	return list
}

// Shown runs the job show and stores its revision as posted and approved by ada, as the transition table and people do.
func (w *World) Shown() *state.Plan {
	w.T.Helper()
	e := w.Do(state.JobShow)
	shown, ok := e.Payload.(event.DiffReady)
	if !ok || e.Run != w.Task.Work.Run || shown.Plan.Publish == nil {
		w.T.Fatalf("event %+v", e)
	}
	p := shown.Plan
	p.Kind, p.Revision, p.Comment, p.CommentNode = state.PlanPublish, 1, 4711, "none"
	p.Hash = state.PlanHash(p)
	p.Publish.Approved = &state.Approval{Kind: p.Kind, Hash: p.Hash, By: w.Person("ada"), Permission: state.PermissionAdmin,
		Via: state.ViaCommand}
	w.Task.Plans, w.Task.Work.Approved = []state.Plan{p}, p.Hash
	return &w.Task.Plans[0]
}
