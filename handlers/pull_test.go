package handlers_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

func TestPullRequestEvents(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		act  func(w *world, p *simgithub.Issue) error
		want []string // those about the pull request
	}{
		"merged": {func(w *world, p *simgithub.Issue) error { return w.ada.Merge(full, p.Number, simgithub.Merge{}) }, []string{"pr_closed #1 by ada merged"}},
		"closed": {func(w *world, p *simgithub.Issue) error { return w.ada.Close(full, p.Number, "") }, []string{"pr_closed #1 by ada"}},
		"reopened": {func(w *world, p *simgithub.Issue) error {
			err := w.ada.Close(full, p.Number, "")
			w.deliveredHooks()
			return errors.Join(err, w.ada.Reopen(full, p.Number))
		}, []string{"pr_reopened #1 by ada"}},
		"a replaced one is reopened": {func(w *world, p *simgithub.Issue) error {
			t := w.tasks.list[0]
			t.Replaced, t.PR = []state.ReplacedPR{{Number: p.Number}}, nil
			err := w.ada.Close(full, p.Number, "")
			return errors.Join(err, w.ada.Reopen(full, p.Number), errOf(w.ada.Comment(full, p.Number, "@errand go on")))
		}, []string{"pull_request: not one of errand's pull requests", "pr_reopened #1 by ada", "issue_comment: not one of errand's pull requests"}},
		"draft": {func(w *world, p *simgithub.Issue) error { return w.ada.SetDraft(full, p.Number, true) }, []string{"pr_changed #1 draft"}},
		"review": {func(w *world, p *simgithub.Issue) error {
			return errOf(w.ada.Review(full, p.Number, simgithub.NewReview{Event: "REQUEST_CHANGES", Body: "Please mend it."}))
		}, []string{`reviewed #1 by ada review:changes_requested:"Please mend it."`}},
		"approval": {func(w *world, p *simgithub.Issue) error {
			return errOf(w.ada.Review(full, p.Number, simgithub.NewReview{Event: "APPROVE"}))
		}, []string{`reviewed #1 by ada review:approved:""`}},
		"a review for somebody else": {func(w *world, p *simgithub.Issue) error {
			return errOf(w.As("bob").Review(full, p.Number, simgithub.NewReview{Event: "COMMENT", Body: "@ada what do you think?"}))
		}, []string{`reviewed #1 by bob review:commented:"@ada what do you think?" remark:to_others`}},
		"threads come with their review": {func(w *world, p *simgithub.Issue) error {
			return errOf(w.ada.Review(full, p.Number, simgithub.NewReview{Event: "COMMENT", Comments: []simgithub.NewReviewComment{{Path: "a.txt", Line: 1, Body: "why?"}}}))
		}, []string{`reviewed #1 by ada review:commented:""`, "pull_request_review_comment: gathered with its review"}},
		"a command in a thread": {func(w *world, p *simgithub.Issue) error {
			return errOf(w.ada.Review(full, p.Number, simgithub.NewReview{Event: "COMMENT", Comments: []simgithub.NewReviewComment{{Path: "a.txt", Line: 1, Body: "@errand stop\n@errand do this"}}}))
		}, []string{`reviewed #1 by ada review:commented:""`, "commented #1 by ada on-pr in-thread mention order:stop"}},
		"errand's own review": {func(w *world, p *simgithub.Issue) error {
			return errOf(w.As(w.App().BotLogin).Review(full, p.Number, simgithub.NewReview{Event: "COMMENT", Body: "@errand stop"}))
		}, []string{"pull_request_review: errand's own review"}},
		"a dismissed review": {func(w *world, p *simgithub.Issue) error {
			r, err := w.ada.Review(full, p.Number, simgithub.NewReview{Event: "REQUEST_CHANGES", Body: "No."})
			w.deliveredHooks()
			return errors.Join(err, w.ada.DismissReview(full, p.Number, r.ID))
		}, []string{"pr_changed #1"}},
		"a comment": {func(w *world, p *simgithub.Issue) error {
			return errOf(w.ada.Comment(full, p.Number, "@errand also the docs"))
		}, []string{"commented #1 by ada on-pr mention order:message"}},
		"a comment by a user without write access": {func(w *world, p *simgithub.Issue) error { return errOf(w.As("eve").Comment(full, p.Number, "nice")) }, []string{"commented #1 by eve on-pr"}},
		"a resolved thread": {func(w *world, p *simgithub.Issue) error {
			_, err := w.ada.Review(full, p.Number, simgithub.NewReview{Event: "COMMENT", Comments: []simgithub.NewReviewComment{{Path: "a.txt", Line: 1, Body: "why?"}}})
			w.deliveredHooks()
			i, err2 := w.ada.Issue(full, p.Number)
			return errors.Join(err, err2, w.ada.ResolveThread(full, p.Number, i.Pull.Threads[0].ID, true))
		}, []string{"pr_changed #1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.issue("Always.")
			p := w.pull()
			check(t, c.act(w, p))
			got := w.mapped()
			var about []string
			for _, l := range got {
				if !strings.HasPrefix(l, "push: ") && !strings.HasPrefix(l, "check_suite: ") {
					about = append(about, l)
				}
			}
			if diff := cmp.Diff(c.want, about); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

// The reply to a command in a thread goes into that thread.
func TestRepliesNameTheirThread(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.issue("Always.")
	p := w.pull()
	_, err := w.ada.Review(full, p.Number, simgithub.NewReview{Event: "COMMENT", Comments: []simgithub.NewReviewComment{{Path: "a.txt", Line: 1, Body: "why?"}}})
	check(t, err)
	i, err := w.ada.Issue(full, p.Number)
	check(t, err)
	th := i.Pull.Threads[0]
	w.deliveredHooks()
	reply, err := w.ada.ReplyToThread(full, p.Number, th.ID, "@errand status")
	check(t, err)
	var found *state.Comment
	for _, h := range w.deliveredHooks() {
		events, _, err := w.mapper.Map(t.Context(), h.event, h.guid, h.payload)
		check(t, err)
		for _, e := range events {
			if e.Kind() == event.KindCommented {
				found = e.Comment()
			}
		}
	}
	want := &state.Comment{ID: reply.ID, Node: reply.NodeID, Body: "@errand status", At: reply.CreatedAt.UTC(), OnPR: true, Thread: th.Comments[0].ID, Mention: true}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("comment (-want +got):\n%s", diff)
	}
}

func TestPushes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.issue("Always.")
	w.pull()
	own := w.tasks.list[0]
	waiting := func(n int, kind state.WaitKind) *state.Task {
		return &state.Task{Key: w.key(n), TaskPhase: state.TaskPhase{Waiting: &state.Waiting{Kind: kind}}, TaskChanges: state.TaskChanges{Branch: state.Branch{Name: "errand/later"}}}
	}
	w.tasks.list = append(w.tasks.list, waiting(7, state.WaitConfig), waiting(8, state.WaitDisabled), waiting(9, state.WaitVM))
	sha, err := w.ada.PushCommit(full, simgithub.Commit{Branch: own.Branch.Name, Message: "By hand", Files: map[string]string{"b.txt": "b\n"}})
	check(t, err)
	w.wants("pushed #1 by ada head "+sha, "pull_request: the push arrives as a push event")
	check(t, errOf(w.ada.PushCommit(full, simgithub.Commit{Branch: "main", Message: "Docs", Files: map[string]string{"c.txt": "c\n"}})))
	w.wants("push: no task on this branch, or errand's own push")
	check(t, errOf(w.ada.PushCommit(full, simgithub.Commit{Branch: "main", Message: "Settings", Files: map[string]string{".errand.yml": "plan: none\n"}})))
	w.wants("poked #7", "poked #8")
	check(t, errOf(w.ada.PushCommit(full, simgithub.Commit{Branch: "main", Message: "No settings", Delete: []string{".errand.yml"}})))
	w.wants("poked #7", "poked #8")
	check(t, w.ada.DeleteBranch(full, own.Branch.Name))
	for _, l := range w.mapped() {
		if l == "pushed #1 by ada head 0000000000000000000000000000000000000000" {
			t.Error("got a push event for a deleted branch, want none")
		}
	}
}

func TestChecks(t *testing.T) {
	t.Parallel()
	for _, conclusion := range []string{"success", "neutral", "skipped", "failure", "timed_out", "action_required", "cancelled"} {
		t.Run(conclusion, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.issue("Always.")
			main, err := w.ada.Branches(full)
			check(t, err)
			p := w.pull()
			check(t, w.CheckRun(full, p.Pull.HeadSHA, "ci", conclusion, ""))
			got := w.mapped()
			if len(got) == 0 || got[len(got)-1] != "checks_changed #1" {
				t.Errorf("conclusion %s: got %q, want a change of the checks last", conclusion, got)
			}
			check(t, w.CheckRun(full, main["main"], "ci", conclusion, ""))
			for _, l := range w.mapped() {
				if l == "checks_changed #1" {
					t.Error("got an event for checks of another commit, want none")
				}
			}
		})
	}
}

func TestClosingAnIssuePokesTasksThatWaitForIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i := w.issue("Always.")
	for n, kind := range map[int]state.WaitKind{1: state.WaitBlocked, 5: state.WaitBlocked, 6: state.WaitMoney} {
		w.tasks.list = append(w.tasks.list, &state.Task{Key: w.key(n), TaskPhase: state.TaskPhase{Waiting: &state.Waiting{Kind: kind}}})
	}
	check(t, w.ada.Close(full, i.Number, ""))
	w.wants("issue_closed #1 by ada", "poked #5")
	j, err := w.ada.OpenIssue(full, simgithub.NewIssue{Title: "Other"})
	check(t, err)
	w.deliveredHooks()
	check(t, w.ada.AddBlockedBy(full, 1, j.ID))
	check(t, w.ada.AddSubIssue(full, 1, j.ID))
	for _, l := range w.mapped() {
		if l != "poked #1" && l != "poked #5" {
			t.Errorf("got %q for a dependency", l)
		}
	}
}

func TestLossOfAccess(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		act  func(w *world)
		want []string
	}{
		"uninstalled":      {func(w *world) { w.Uninstall("acme") }, []string{"gone #1 says the App was uninstalled"}},
		"suspended":        {func(w *world) { w.Suspend("acme", true) }, []string{"gone #1 says the App was suspended"}},
		"repository taken": {func(w *world) { check(w.t, w.RemoveFromInstallation(full)) }, []string{"gone #1 says the repository was taken from the App"}},
		"made private":     {func(w *world) { check(w.t, w.SetPrivate(full, true)) }, []string{"renamed #1"}},
		"made public":      {func(w *world) { check(w.t, w.SetPrivate(full, false)) }, []string{"renamed #1"}},
		"renamed":          {func(w *world) { check(w.t, w.RenameRepo(full, "slugs")) }, []string{"renamed #1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.tasks.list = []*state.Task{
				{Key: w.key(1), TaskIssue: state.TaskIssue{Installation: w.installation}},
				{Key: state.TaskKey{Repo: w.repo.ID + 1, Issue: 2}, TaskIssue: state.TaskIssue{Installation: w.installation + 1}},
			}
			c.act(w)
			w.wants(c.want...)
		})
	}
}

func TestRenameCarriesTheNewName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tasks.list = []*state.Task{{Key: w.key(1)}}
	check(t, w.RenameRepo(full, "slugs"))
	h := w.deliveredHooks()[0]
	events, _, err := w.mapper.Map(t.Context(), h.event, h.guid, h.payload)
	check(t, err)
	if len(events) != 1 || events[0].Repo == nil || events[0].Repo.FullName() != "acme/slugs" || events[0].Repo.ID != w.repo.ID {
		t.Errorf("got events %+v", events)
	}
}

func TestMapReturnsStoreErrors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.issue("Always.")
	p := w.pull()
	w.tasks.err = errors.New("disk on fire")
	check(t, w.ada.Merge(full, p.Number, simgithub.Merge{}))
	for _, h := range w.deliveredHooks() {
		if h.event != "pull_request" {
			continue
		}
		if _, _, err := w.mapper.Map(t.Context(), h.event, h.guid, h.payload); !errors.Is(err, w.tasks.err) {
			t.Errorf("%s: got error %v", h.event, err)
		}
	}
	events, reason, err := w.mapper.Map(t.Context(), "marketplace_purchase", "g", nil)
	if len(events) != 0 || reason == "" || err != nil {
		t.Errorf("unknown webhook: got events %v, reason %q, error %v", events, reason, err)
	}
}

// Stored times are in UTC, not in GitHub's time zones.
func TestTimesAreUTC(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i := w.issue("Always.")
	check(t, errOf(w.ada.Comment(full, i.Number, "words")))
	for _, h := range w.deliveredHooks() {
		events, _, err := w.mapper.Map(t.Context(), h.event, h.guid, h.payload)
		check(t, err)
		if at := events[0].At; at.IsZero() || at.Location() != time.UTC {
			t.Errorf("%s: got time %v, want UTC", h.event, at)
		}
	}
}

// Pushes to the base of a pull request are hints, whoever made them. A push to the branch is a person's if a person presses Update branch,
// and errand's own if GitHub updated the branch for errand.
func TestPushesToTheBase(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.issue("Always.")
	p := w.pull()
	own := w.tasks.list[0]
	own.Branch.Base = "main"
	w.tasks.list = append(w.tasks.list,
		&state.Task{Key: w.key(7), TaskPhase: state.TaskPhase{Phase: state.PhaseImplementing}, TaskChanges: state.TaskChanges{Branch: state.Branch{Name: "errand/7", Base: "main"}}},
		&state.Task{Key: w.key(8), TaskPhase: state.TaskPhase{Phase: state.PhasePlanning}, TaskChanges: state.TaskChanges{Branch: state.Branch{Name: "errand/8", Base: "main"}}},
		&state.Task{Key: w.key(9), TaskPhase: state.TaskPhase{Phase: state.PhaseImplementing}, TaskChanges: state.TaskChanges{Branch: state.Branch{Name: "errand/9", Base: "release"}}})
	bot := w.As(w.App().BotLogin)
	check(t, w.ada.SetPermission(full, bot.Login(), simgithub.RoleWrite)) // stands for the App's permission
	w.deliveredHooks()
	for _, by := range []simgithub.Person{w.As("bob"), bot} {
		check(t, errOf(by.PushCommit(full, simgithub.Commit{Branch: "main", Message: "Docs", Files: map[string]string{by.Login(): "c\n"}})))
		w.wants("base_moved #1", "base_moved #7")
	}
	check(t, bot.UpdateBranch(full, p.Number, simgithub.BranchUpdate{}))
	w.wants("push: no task on this branch, or errand's own push", "pull_request: the push arrives as a push event")
	check(t, errOf(w.ada.PushCommit(full, simgithub.Commit{Branch: "main", Message: "Docs", Files: map[string]string{"d.txt": "d\n"}})))
	w.wants("base_moved #1", "base_moved #7")
	check(t, w.As("bob").UpdateBranch(full, p.Number, simgithub.BranchUpdate{Rebase: true}))
	i, err := w.ada.Issue(full, p.Number)
	check(t, err)
	w.wants("pushed #1 by bob head "+i.Pull.HeadSHA, "pull_request: the push arrives as a push event")
}
