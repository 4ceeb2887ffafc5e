package admin_test

import (
	"strings"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/settings"
	"github.com/errand-bot/errand/state/store"
)

// sample is a store with many tasks in various states.
func sample() *memory {
	m := &memory{poison: []store.Delivery{{GUID: "1f-2", Event: "issues", Received: noon.Add(-time.Hour), Failures: 5, LastError: "decode: <unexpected> end"}}}
	titles := []string{
		"Prices are rounded twice", "Export hangs on empty carts", "Add a dark theme", "Login fails with umlauts in the password",
		"Flaky test in the importer", "Upgrade the PDF library", "Wrong time zone in receipts", "Document the webhook format",
	}
	phases := []state.Phase{
		state.PhaseImplementing, state.PhasePreliminaryPlanning, state.PhaseAwaitingPreliminaryApproval, state.PhasePROpen,
		state.PhaseFailed, state.PhaseInterrupted, state.PhaseDone, state.PhaseCancelled,
	}
	for i, phase := range phases {
		m.tasks = append(m.tasks, sampleTask(i+1, titles[i], phase))
	}
	detailed(m.tasks[0])
	m.tasks[1].Waiting = &state.Waiting{Kind: state.WaitVM, Detail: "All 3 VMs are in use.", Since: noon.Add(-4 * time.Minute), Until: noon.Add(time.Minute)}
	m.tasks[3].PR = &state.PR{Number: 31, URL: "https://git.example/acme/shop/pull/31", State: "open", Checks: "success",
		ChecksReason: "all 2 required checks succeeded", ChecksOptional: "lint \x1b[2J", MergeWaits: "a review thread is not resolved \x1b[2J"}
	m.tasks[4].End = &state.End{Reason: "The agent gave up after 30 turns.", Hint: "Write `retry turns=60` to let it go on for longer.", Class: state.ClassLimit}
	m.tasks[6].PR = &state.PR{Number: 29, URL: "https://git.example/acme/shop/pull/29", State: "merged"}
	m.tasks[7].End = &state.End{Reason: "The issue was closed."}
	m.jobs = []state.Job{
		{ID: "7-1-9", Kind: state.JobStatus, Task: m.tasks[0].Key, Lane: state.LaneStatus, State: state.JobQueued, Created: noon.Add(-time.Minute)},
		{ID: "7-1-8", Kind: state.JobPost, Task: m.tasks[0].Key, Lane: state.LaneTalk, State: state.JobClaimed, Created: noon, Attempt: 3, LastError: "create comment: 502 <bad gateway>"},
		{ID: "7-7-2", Kind: state.JobRelease, Task: m.tasks[6].Key, Lane: state.LaneWork, State: state.JobQueued, Created: noon.Add(-2 * time.Minute), NotBefore: noon.Add(time.Hour)},
	}
	return m
}

func sampleTask(issue int, title string, phase state.Phase) *state.Task {
	begun := noon.Add(-time.Duration(issue) * 17 * time.Minute)
	return &state.Task{
		Key: state.TaskKey{Repo: 7, Issue: issue}, Gen: 1, TaskPhase: state.TaskPhase{Phase: phase, Since: begun.Add(5 * time.Minute),
			History: []state.PhaseChange{{Phase: state.PhaseQueued, At: begun, Reason: "assigned by @ada"}, {Phase: phase, At: begun.Add(5 * time.Minute), Reason: "went on"}}},
		TaskIssue: state.TaskIssue{Repo: state.Repo{ID: 7, Owner: "acme", Name: "shop", URL: "https://git.example/acme/shop"},
			Trigger:  state.Trigger{By: writer, Via: "assigned", At: begun},
			Frozen:   state.Frozen{Title: title},
			Settings: settings.Default()},
		Money:    state.Money{InputTokens: 81_000, OutputTokens: 9_400, MicroUSD: int64(issue) * 310_000, CapMicroUSD: 10_000_000},
		TaskRuns: state.TaskRuns{Runs: []state.Run{{Seq: 1, Kind: state.RunPlan, State: state.RunEnded, Started: begun, Ended: begun.Add(time.Duration(issue) * 7 * time.Minute)}}},
	}
}

// detailed fills every field of a task that pages show.
func detailed(t *state.Task) {
	at := func(minutes int) time.Time { return t.Trigger.At.Add(time.Duration(minutes) * 20 * time.Second) }
	t.History = nil
	for i, phase := range []state.Phase{
		state.PhaseQueued, state.PhasePreliminaryPlanning, state.PhaseAwaitingPreliminaryApproval, state.PhasePreliminaryPlanning,
		state.PhaseAwaitingPreliminaryApproval, state.PhasePlanning, state.PhaseAwaitingPlanApproval, state.PhaseImplementing,
	} {
		t.History = append(t.History, state.PhaseChange{Phase: phase, At: at(3 * i), Reason: "because of <event>"})
	}
	t.Since = at(21)
	t.Branch = state.Branch{Name: "errand/1-prices-are-rounded-twice", Base: "main", BaseSHA: "0123456789abcdef"}
	t.Plans = []state.Plan{
		{Kind: state.PlanPreliminary, Revision: 1, Hash: "aaaa1111", Text: "Round <i>later</i>.", Made: at(5), Comment: 1, Superseded: true, CommentURL: "https://git.example/c/1"},
		{Kind: state.PlanPreliminary, Revision: 2, Hash: "bbbb2222", Text: "Round once.", Changes: "Tests are in.", Made: at(11), Comment: 2, CommentURL: "https://git.example/c/2"},
		{Kind: state.PlanThorough, Revision: 1, Hash: "cccc3333", Text: "## Steps\n\n1. Round once.\n" + strings.Repeat("2. And again.\n", 300), Made: at(17), Comment: 3, CommentURL: "javascript:alert(1)", Estimate: "about $0.80"},
	}
	t.Approval = &state.Approval{Kind: state.PlanThorough, Hash: "cccc3333", By: writer, Permission: state.PermissionWrite, Via: state.ViaReaction, Given: at(20), With: "keep the API",
		Before: &state.Approval{Kind: state.PlanPreliminary, Hash: "bbbb2222", By: state.Person{ID: 3, Login: "grace"}, Permission: state.PermissionAdmin, Via: state.ViaCommand, Given: at(13)}}
	t.RunSeq = 4
	money := state.Money{InputTokens: 20_000, OutputTokens: 2_100, MicroUSD: 90_000}
	t.Runs = []state.Run{
		{ID: "7-1-1", Seq: 1, Kind: state.RunPreliminary, State: state.RunEnded, Started: at(3), Ended: at(5), RunVerdict: state.RunVerdict{Status: state.StatusOK, Class: state.RunSucceeded}, RunActivity: state.RunActivity{Turns: 6}, RunUsage: state.RunUsage{Money: money}, RunLaunch: state.RunLaunch{Model: "sonnet"}},
		{ID: "7-1-2", Seq: 2, Kind: state.RunPreliminary, State: state.RunEnded, Started: at(9), Ended: at(11), RunVerdict: state.RunVerdict{Status: state.StatusCrashed, Class: state.RunRetryable, Message: "exit code 3 <tag>"}, RunUsage: state.RunUsage{Money: money}},
		{ID: "7-1-3", Seq: 3, Kind: state.RunPlan, State: state.RunEnded, Started: at(15), Ended: at(17), RunVerdict: state.RunVerdict{Status: state.StatusOK, Class: state.RunSucceeded}, RunActivity: state.RunActivity{Turns: 11}, RunUsage: state.RunUsage{Money: money}},
	}
	t.Run = &state.Run{ID: "7-1-4", Seq: 4, Kind: state.RunImplement, State: state.RunActive, Started: at(22), RunActivity: state.RunActivity{LastActivity: noon.Add(-4 * time.Second), Doing: "go test ./price/...", Turns: 9}, RunLaunch: state.RunLaunch{Adapter: "claude", Model: "sonnet"}, RunUsage: state.RunUsage{Money: money}}
	t.VM = &state.VM{Name: "errand-7-1-2", Provider: "local", Kind: "bwrap", Gen: 2, CreatedAt: at(14)}
	t.VMs = []state.VM{{Name: "errand-7-1-1", Provider: "local", Kind: "plain", Gen: 1, CreatedAt: at(2), EndedAt: at(13), EndReason: "retry_fresh"}}
	t.Status = state.StatusComment{Comment: 1, URL: "https://git.example/c/status"}
	t.Posted = []state.Posted{{Kind: "plan", ID: 1, URL: "https://git.example/c/1", At: at(6)}, {Kind: "pr_opened", ID: 2, URL: "https://git.example/c/2", At: at(12), OnPR: true}}
	t.Saved = []state.SavedWork{{Run: "7-1-2", Ref: "7-1-2-abcdef", At: at(13), Reason: "the run crashed"}}
	t.Context.Withheld = []state.Withheld{{ID: 5}}
	t.Notes = []state.Note{{Run: "7-1-3", Kind: state.NoteStep, Text: "Round once <b>", At: at(16)}}
	t.Proposed = []state.Proposal{
		{N: 1, Run: "7-1-3", Title: "Old <i>notes</i>", Body: "They are old.", At: at(16)},
		{N: 2, Run: "7-1-3", Title: "Bad address", Body: "x", At: at(16), Issue: 44, URL: "javascript:alert(2)"},
	}
	t.Ignored = 2
}
