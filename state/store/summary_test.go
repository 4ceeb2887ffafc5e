package store

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/machine"
)

// Every run counts for its step, including the active one; verdicts are in the order of their times; only an ended task
// has an end.
func TestSummary(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	at := func(minutes int) time.Time { return noon.Add(time.Duration(minutes) * time.Minute) }
	run := func(seq int, kind state.RunKind, from, to int, status state.RunStatus) state.Run {
		r := state.Run{Seq: seq, Kind: kind, State: state.RunEnded, RunVerdict: state.RunVerdict{Status: status}, Started: at(from), RunActivity: state.RunActivity{Turns: 2}, RunUsage: state.RunUsage{Money: state.Money{InputTokens: 100, OutputTokens: 10, MicroUSD: 5}}}
		if r.Ended = at(to); status == "" {
			r.State, r.Ended = state.RunActive, time.Time{}
		}
		return r
	}
	ada := state.Person{Login: "ada"}
	failed := run(3, state.RunImplement, 40, 45, "crashed")
	failed.Message = "it fell over"
	going := run(4, state.RunImplement, 50, 0, "")
	task := state.Task{
		Key: state.TaskKey{Repo: 7, Issue: 3}, Gen: 2, TaskIssue: state.TaskIssue{Repo: state.Repo{Owner: "acme", Name: "shop"}}, TaskPhase: state.TaskPhase{Phase: state.PhaseImplementing,
			History: []state.PhaseChange{{Phase: state.PhaseQueued, At: noon, Reason: "assigned"}, {Phase: state.PhaseImplementing, At: at(40), Reason: "approved"}},
			End:     &state.End{Reason: "of the life before"}}, TaskChanges: state.TaskChanges{Round: 1, Branch: state.Branch{Name: "errand/3"}}, TaskRuns: state.TaskRuns{Active: time.Minute, // since a retry
			Runs: []state.Run{run(1, state.RunPreliminary, 1, 5, "ok"), run(2, state.RunPlan, 20, 30, "ok"), failed}, Run: &going},
		Money: state.Money{InputTokens: 400, OutputTokens: 40, MicroUSD: 20, CapMicroUSD: 1000},
		TaskPlans: state.TaskPlans{Plans: []state.Plan{
			{Kind: state.PlanPreliminary, Revision: 1, Hash: "a", Made: at(5), Comment: 1, Superseded: true},
			{Kind: state.PlanPreliminary, Revision: 2, Hash: "b", Made: at(10), Comment: 2},
			{Kind: state.PlanThorough, Revision: 1, Hash: "c", Made: at(30), Comment: 3, Stale: state.StaleEdited},
			{Kind: state.PlanThorough, Revision: 2, Hash: "d", Made: at(31), Comment: 4},
			{Kind: state.PlanPublish, Revision: 1, Hash: "e", Made: at(46), Publish: &state.Changes{Approved: &state.Approval{Hash: "e", At: at(47), By: ada}}},
		},
			Approval: &state.Approval{Kind: state.PlanThorough, Hash: "d", At: at(35), By: ada, Before: &state.Approval{Kind: state.PlanPreliminary, Hash: "b", At: at(15), By: ada}}},
	}
	sum := func(runs int) state.Money {
		n := int64(runs)
		return state.Money{InputTokens: 100 * n, OutputTokens: 10 * n, MicroUSD: 5 * n}
	}
	want := state.Summary{
		Task: "acme/shop#3", Life: 2, Phase: state.PhaseImplementing, Start: noon, Iterations: 4, Rounds: 1, Active: 19 * time.Minute, Money: task.Money,
		Steps: []state.StepSum{
			{Step: state.RunPreliminary, Runs: 1, Took: 4 * time.Minute, Turns: 2, Money: sum(1)},
			{Step: state.RunPlan, Runs: 1, Took: 10 * time.Minute, Turns: 2, Money: sum(1)},
			{Step: state.RunImplement, Runs: 2, Took: 5 * time.Minute, Turns: 4, Money: sum(2)},
		},
		Phases: task.History, Branch: "errand/3",
		Verdicts: []state.Verdict{
			{At: at(5), Subject: "run 1, preliminary_plan", Verdict: "ok"},
			{At: at(5), Subject: "preliminary plan 1", Verdict: "superseded"},
			{At: at(15), Subject: "preliminary plan 2", Verdict: "approved", By: "ada"},
			{At: at(30), Subject: "run 2, plan", Verdict: "ok"},
			{At: at(30), Subject: "detailed plan 1", Verdict: "stale", Message: state.StaleEdited},
			{At: at(35), Subject: "detailed plan 2", Verdict: "approved", By: "ada"},
			{At: at(45), Subject: "run 3, implement", Verdict: "crashed", Message: "it fell over"},
			{At: at(47), Subject: "changes 1", Verdict: "approved", By: "ada"},
		},
	}
	if diff := cmp.Diff(want, task.Summary()); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
	if len(task.Runs) != 3 {
		t.Error("got a task changed by Summary, want it unchanged")
	}
	task.Phase, task.End, task.PR = state.PhaseFailed, &state.End{Reason: "No.", Hint: "Do.", Class: state.ClassAgent, At: at(60)}, &state.PR{URL: "https://git.example/1"}
	if s := task.Summary(); s.End != at(60) || s.Reason != "No." || s.Hint != "Do." || s.Class != state.ClassAgent || s.Pull != task.PR.URL {
		t.Errorf("failed task: got %+v", s)
	}
}

// TestPhaseChangesAreReported: Options.PhaseChanged is called after a change of phase and after the end of a run, when they are stored, and not for
// progress events or events without effect.
func TestPhaseChangesAreReported(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	var told []state.Phase
	s.phaseChanged = func(ctx context.Context, key state.TaskKey) {
		task, err := s.Task(ctx, key)
		if err != nil || task == nil {
			t.Errorf("got a call for %s, which is not stored: %v", key, err)
			return
		}
		told = append(told, task.Phase)
	}
	key := state.TaskKey{Repo: 7, Issue: 1}
	for _, phase := range []state.Phase{state.PhaseQueued, state.PhaseQueued, state.PhasePlanning, state.PhaseFailed} {
		s.next = func(before *state.Task, e event.Event, _ machine.Policy) machine.Change {
			after := &state.Task{TaskPhase: state.TaskPhase{Phase: phase, Since: e.Now}}
			if before != nil && before.Phase == phase {
				after.Since = before.Since
			}
			return machine.Change{Task: after}
		}
		for _, payload := range []event.Payload{event.Progress{}, event.RunEnded{}} {
			s.advance(time.Second)
			if _, err := s.Apply(t.Context(), event.Event{Task: key, Payload: payload}, Ack{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := []state.Phase{state.PhaseQueued, state.PhaseQueued, state.PhaseQueued, state.PhasePlanning, state.PhasePlanning, state.PhaseFailed, state.PhaseFailed}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("reported phases (-want +got):\n%s", diff)
	}
	s.next = func(*state.Task, event.Event, machine.Policy) machine.Change { return machine.Change{} }
	if _, err := s.Apply(t.Context(), event.Event{Task: key, Payload: event.RunEnded{}}, Ack{}); err != nil || len(told) != len(want) {
		t.Errorf("got a call for an event that changes nothing (%v)", err)
	}
}
