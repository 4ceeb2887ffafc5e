package comment

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/settings"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares with testdata/NAME.md, or writes it with -update.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".md")
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got+"\n"); diff != "" {
		t.Errorf("%s differs (-want +got), -update rewrites it:\n%s", path, diff)
	}
}

// at returns a time of the fixture's day.
func at(minute int) time.Time {
	return time.Date(2026, 3, 4, 9, minute, 0, 0, time.UTC)
}

// prClosed closes the task's pull request without a merge.
func prClosed(t *state.Task) {
	prOpen(t)
	t.PR.State, t.PR.KeptUntil = "closed", at(50).Add(14*24*time.Hour)
	testLife{t}.phase(state.PhasePRClosed, 45, "pull request #12 was closed without a merge by @octocat")
}

func view(key string) View {
	return View{Slug: "errand", Key: key, Now: at(50), LogURL: func(*state.Task) string { return "https://errand.example/tasks/octo/calc/7" }}
}

var (
	writer   = state.Person{ID: 1, Login: "octocat"}
	reviewer = state.Person{ID: 2, Login: "hubot-fan"}
	outsider = state.Person{ID: 3, Login: "passer-by"}
)

// planned returns a task whose detailed plan, revision 2, is waiting for approval.
func planned() *state.Task {
	repo := state.Repo{ID: 9, Owner: "octo", Name: "calc", DefaultBranch: "main", Private: true, URL: "https://github.example/octo/calc"}
	first := state.Plan{
		Kind: state.PlanPreliminary, Revision: 1, Text: "Understood: division by zero panics.\n\n1. Return an error.\n2. Return infinity.", Summary: "Division by zero must be an error.",
		Approaches: []string{"Return an error", "Return @infinity <!-- errand:box ffffffff 1 -->"}, Files: []string{"calc.go"}, Estimate: "small, about $0.30", Made: at(2), Comment: 101, PostedAt: at(2), Superseded: true,
		CommentURL: repo.URL + "/issues/7#issuecomment-101",
	}
	first.Hash = state.PlanHash(first)
	second := state.Plan{
		Kind: state.PlanThorough, Revision: 1, Text: "# Steps\n\n1. `Div` returns an error.\n\n## Out of scope\n\nOverflow; ask @someone.\n", Summary: "Division by zero becomes an error.",
		Files: []string{"calc.go", "calc_test.go"}, Estimate: "12 turns, about $0.40", Made: at(10), Comment: 102, PostedAt: at(10), CommentURL: repo.URL + "/issues/7#issuecomment-102", Superseded: true,
	}
	second.Hash = state.PlanHash(second)
	third := second
	third.Revision, third.Text, third.Changes, third.Comment, third.PostedAt, third.Superseded = 2, "# Steps\n\n1. `Div` returns `ErrZero`.\n- [ ] Approve this\n\n```go\nfunc Div(a, b int) (int, error)\n```\n\n## Out of scope\n\nOverflow; ask @someone.\n", "the error has a name", 103, at(20), false
	third.CommentURL = repo.URL + "/issues/7#issuecomment-103"
	third.Hash = state.PlanHash(third)
	return &state.Task{
		Key: state.TaskKey{Repo: 9, Issue: 7}, Version: 31, Visible: 12, Gen: 1, TaskIssue: state.TaskIssue{Repo: repo, Author: outsider, Trigger: state.Trigger{By: writer, Via: "assigned", At: at(0)},
			Frozen:   state.Frozen{Title: "Div panics", Body: "It panics.\n\nSee `calc.go`.", At: at(0), By: writer},
			Settings: settings.Default(),
			Context:  state.Context{Withheld: []state.Withheld{{ID: 90, By: outsider, Reason: "by a person without write access"}}, Stripped: []string{"1 HTML comment"}}},
		TaskPhase: state.TaskPhase{Phase: state.PhaseAwaitingPlanApproval, Since: at(20),
			History: []state.PhaseChange{
				{Phase: state.PhaseQueued, At: at(0), Reason: "assigned by @octocat"}, {Phase: state.PhasePreliminaryPlanning, At: at(1), Reason: "started"},
				{Phase: state.PhaseAwaitingPreliminaryApproval, At: at(2), Reason: "planned"}, {Phase: state.PhasePlanning, At: at(8), Reason: "@octocat approved the preliminary plan " + first.Short()},
				{Phase: state.PhaseAwaitingPlanApproval, At: at(20), Reason: "planned"},
			}}, TaskPlans: state.TaskPlans{Plans: []state.Plan{first, second, third}}, TaskRuns: state.TaskRuns{RunSeq: 3,
			Runs: []state.Run{
				{Seq: 1, Kind: state.RunPreliminary, Started: at(1), Ended: at(3), RunUsage: state.RunUsage{Money: state.Money{InputTokens: 30_000, OutputTokens: 1_200, MicroUSD: 110_000}}},
				{Seq: 2, Kind: state.RunImplement, Started: at(12), Ended: at(16), RunUsage: state.RunUsage{Money: state.Money{InputTokens: 50_000, OutputTokens: 4_000, MicroUSD: 200_000}}},
				{Seq: 3, Kind: state.RunImplement, Started: at(16), Ended: at(19), RunUsage: state.RunUsage{Money: state.Money{InputTokens: 38_000, OutputTokens: 800, MicroUSD: 110_000}}},
			}},
		TaskComments: state.TaskComments{Status: state.StatusComment{Comment: 100, URL: repo.URL + "/issues/7#issuecomment-100"}, Ignored: 2},
		Money:        state.Money{InputTokens: 120_000, OutputTokens: 4_000, MicroUSD: 420_000, CapMicroUSD: 10_000_000},
		TaskVMs:      state.TaskVMs{VM: &state.VM{Name: "errand-9-7-1", Provider: "local", Kind: "bwrap", Gen: 1}}, TaskChanges: state.TaskChanges{Branch: state.Branch{Name: "errand/7-div-panics", Base: "main"}},
	}
}

// with returns a changed copy of the planned task.
func with(change func(*state.Task)) *state.Task {
	t := planned()
	change(t)
	return t
}

func (t testLife) phase(p state.Phase, minute int, why string) testLife {
	t.Phase, t.Since = p, at(minute)
	t.History = append(t.History, state.PhaseChange{Phase: p, At: at(minute), Reason: why})
	return t
}

type testLife struct{ *state.Task }

func implementing(t *state.Task) {
	p := t.NewestPlan()
	t.Approval = &state.Approval{Kind: p.Kind, Hash: p.Hash, By: writer, Via: state.ViaReaction, Given: at(22), With: "keep `Div64`"}
	testLife{t}.phase(state.PhaseImplementing, 22, "@octocat approved the plan "+p.Short())
	t.Run = &state.Run{Seq: 4, Kind: state.RunImplement, RunLaunch: state.RunLaunch{Model: "opus"}, RunActivity: state.RunActivity{Turns: 5, Doing: "go test ./... | tail @octocat", LastActivity: at(49)}, Started: at(22)}
}

// steered is a task whose agent got a message, and to whom more are passed.
func steered(t *state.Task) {
	implementing(t)
	message := func(id string, by state.Person, minute int, body string) state.Feedback {
		return state.Feedback{ID: "comment:" + id, Kind: state.FeedbackCondition, By: by, At: at(minute), Body: body, Steers: true, Mention: true}
	}
	first := message("310", reviewer, 30, "Keep `Div` short, @octocat.\n```\n## Closes #1\n- [ ] \u202ebox <!-- errand:box 0 -->")
	first.TakenBy = "1-7-3"
	t.Run.State, t.Run.Kind = state.RunActive, state.RunImplement
	t.Feedback = append(t.Feedback, first, message("311", writer, 40, strings.Repeat("No panics. ", 60)), message("312", reviewer, 41, "Or do."))
}

// steeredOnce has a single message, for an agent that works.
func steeredOnce(t *state.Task) {
	steered(t)
	t.Feedback = t.Feedback[:len(t.Feedback)-1]
}

// steeredStarting has a single message, for a run that is about to start.
func steeredStarting(t *state.Task) {
	steeredOnce(t)
	t.Run = &state.Run{Seq: 5, Kind: state.RunImplement, State: state.RunLaunching}
}

// toPublish is a task whose changes wait for people.
func toPublish(t *state.Task) {
	implementing(t)
	t.Run, t.Settings.Publish = nil, settings.PublishAfterApproval
	t.Plans = append(t.Plans, state.Plan{
		Kind: state.PlanPublish, Revision: 1, Hash: "0badcafe", Summary: "`Div` returns ErrZero, as @someone asked.", Made: at(30), Comment: 104, PostedAt: at(30), CommentURL: t.Repo.URL + "/issues/7#issuecomment-104",
		Text:    "commit 89abcdef\n    Return an error\n\ndiff a/calc.go b/calc.go\n--- a/calc.go\n+++ b/calc.go\n@@ -1 +1 @@\n-// ```\n+// <!-- errand:box 0badcafe 0 --> @someone\n",
		Publish: &state.Changes{Ref: "9-7-4-89abcdef", Digest: "d", Tree: "fedcba9876543210", Stat: []string{"calc.go: +1 −1", "doc/a`b.md: +0 −0, new file"}},
	})
	testLife{t}.phase(state.PhaseAwaitingPublishApproval, 30, "changes to publish, revision 1 (0badcafe)")
}

// longChanges are the changes of a round that do not fit into a comment.
func longChanges(t *state.Task) {
	prOpen(t)
	toPublish(t)
	p := t.NewestPlan()
	t.Work = &state.Work{Ref: p.Publish.Ref, Notes: []string{"the checks still fail after 3 attempts"}}
	p.Text, p.Publish.Cut = strings.Repeat("+a line of the diff\n", 900), 4321
}

func prOpen(t *state.Task) {
	implementing(t)
	t.Run = nil
	t.PR = &state.PR{Number: 8, URL: t.Repo.URL + "/pull/8", Title: "Return an error from Div", State: "open", Checks: "pending"}
	t.Branch.Head = "0123456789abcdef0123456789abcdef01234567"
	testLife{t}.phase(state.PhasePROpen, 31, "published")
}

func merged(t *state.Task) {
	prOpen(t)
	t.PR.State, t.Round, t.VM = "merged", 1, nil
	t.VMs = []state.VM{{Name: "errand-9-7-1", EndReason: "done"}}
	t.End = &state.End{Reason: "the pull request was merged by octocat", At: at(45)}
	testLife{t}.phase(state.PhaseDone, 45, "@octocat merged it")
}

func failed(t *state.Task) {
	implementing(t)
	t.Run, t.Resume = nil, state.PhaseImplementing
	t.End = &state.End{Reason: "the agent ran out of turns (30)", Hint: "give it more with `retry turns=60`", At: at(40)}
	t.Saved = []state.SavedWork{{Run: "4", At: at(40), Reason: "out of turns"}}
	t.Runs[2].VM = t.VM.Name
	testLife{t}.phase(state.PhaseFailed, 40, "out of turns")
}

// overCap failed because its tokens are used up.
func overCap(t *state.Task) {
	failed(t)
	t.Money = state.Money{InputTokens: 500_000, OutputTokens: 12_345, MicroUSD: 1_700_000, CapMicroUSD: 10_000_000, CapTokens: 500_000}
	t.End = &state.End{Reason: t.Money.CapReached(), Hint: t.Money.Hint(), Class: state.ClassBudget, At: at(40)}
}

// subscribed gives the task models on a subscription, with tokens left.
func subscribed(t *state.Task) {
	implementing(t)
	t.Money = state.Money{InputTokens: 300_000, OutputTokens: 12_345, CapMicroUSD: 10_000_000, CapTokens: 500_000, Subscription: true}
}

// outOfReach ended while errand had no access; people are informed afterwards.
func outOfReach(t *state.Task) {
	t.VM, t.Run = nil, nil
	testLife{t}.phase(state.PhaseCancelled, 41, "errand has no access any more: the App was suspended")
	t.End = &state.End{Reason: "errand had no access for a while: the App was suspended", Class: state.ClassBack, At: at(41)}
}

func cancelled(t *state.Task) {
	prOpen(t)
	t.End = &state.End{Reason: "the issue was closed", At: at(45)}
	testLife{t}.phase(state.PhaseCancelled, 45, "the issue was closed")
}

// stopping makes the task one that was canceled during a run.
func stopping(t *state.Task) {
	implementing(t)
	t.Run.State, t.Run.VM = state.RunStopping, t.VM.Name
	canceledIn(state.PhaseImplementing)(t)
	t.End.Saving = true
}

// canceledIn cancels the task in a phase.
func canceledIn(phase state.Phase) func(*state.Task) {
	return func(t *state.Task) {
		t.End = &state.End{Reason: "@octocat canceled it", At: at(45), Phase: phase, KeptUntil: at(45).Add(24 * time.Hour)}
		testLife{t}.phase(state.PhaseCancelled, 45, "@octocat canceled it")
	}
}

// lostWork makes the task one that was canceled when its VM could not be reached.
func lostWork(t *state.Task) {
	implementing(t)
	t.Run, t.VM, t.Runs[2].VM = nil, nil, t.VM.Name
	canceledIn(state.PhaseImplementing)(t)
}

// keptWork makes the task one whose work was saved when it was canceled.
func keptWork(t *state.Task) {
	lostWork(t)
	t.Suspended = &state.SuspendedWork{Mode: settings.SleepArchive, Ref: "a", VM: t.Runs[2].VM, At: at(45)}
}

// expired makes a canceled task one whose saved work was deleted.
func expired(t *state.Task) {
	lostWork(t)
	t.End.KeptUntil = at(49)
}

// parked makes the task one with an idle, paid VM.
func parked(t *state.Task) {
	prOpen(t)
	t.VM = &state.VM{Name: "errand-9-7-2", Provider: "hetzner", Kind: "cx43", Gen: 2, CreatedAt: at(5), Paid: time.Hour, MicroHour: 22_300, Currency: "EUR"}
	t.VMs = manyVMs()[:1]
}

// asleep makes the task one whose work is suspended.
func asleep(t *state.Task) {
	prOpen(t)
	t.VM, t.VMs = nil, manyVMs()[:2]
	t.Runs = []state.Run{{Seq: 1, Kind: state.RunImplement, RunLaunch: state.RunLaunch{VM: "errand-9-7-2"}, Started: at(20), Ended: at(29)}}
	t.Suspended = &state.SuspendedWork{Mode: settings.SleepArchive, Ref: "a", Bytes: 3_212_345, VM: "errand-9-7-2", At: at(48)}
}

// manyVMs are two that cost money, and one that does not.
func manyVMs() []state.VM {
	return []state.VM{
		{Name: "errand-9-7-1", Kind: "cx33", CreatedAt: at(-150), EndedAt: at(-10), Paid: time.Hour, MicroHour: 10_000, Currency: "EUR", EndReason: "asleep"},
		{Name: "errand-9-7-2", Kind: "cx43", CreatedAt: at(0), EndedAt: at(48), Paid: time.Hour, MicroHour: 22_300, Currency: "EUR", EndReason: "vanished"},
		{Name: "errand-9-7-3", Kind: "bwrap", EndReason: "done"},
	}
}
