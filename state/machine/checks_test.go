package machine

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/settings"
)

// runChecks has the repository's checks running on what an agent did.
func (l *life) runChecks() {
	l.t.Helper()
	l.toPreliminary()
	l.task.Settings.Check = []settings.Command{{Run: "make test"}}
	l.approve()
	l.launch()
	l.end(state.RunResult{Text: "Steps.", Outcome: "build"})
	l.postPlan(12)
	l.approve()
	l.launch()
	l.end(state.RunResult{Outcome: "done"})
	l.do(event.Event{Payload: event.Collected{Work: &state.Work{Run: l.task.Work.Run, Paths: 1, LocalHead: "h", LocalTree: "t"}}})
	l.launch()
	if l.task.Run == nil || l.task.Run.Kind != state.RunCheck {
		l.t.Fatalf("got no check run: %+v", l.task.Run)
	}
}

// The verdict on checks that ran depends on their results only; a run that could not run them keeps its status.
func TestVerdictOnChecks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		class         state.RunClass
		checks        []state.CheckResult
		verdict, want string
	}{
		"all green":     {state.RunSucceeded, []state.CheckResult{{Name: "test"}, {Name: "lint"}}, "passed", "2 passed"},
		"some red":      {state.RunSucceeded, []state.CheckResult{{Name: "test"}, {Name: "lint", Code: 1}, {Name: "vet", TimedOut: true}}, "failed", "lint, vet failed; 1 passed"},
		"some skipped":  {state.RunSucceeded, []state.CheckResult{{Name: "test"}, {Name: "slow", Skipped: "nothing that it watches has changed"}}, "passed", "1 passed; slow skipped"},
		"none":          {state.RunSucceeded, nil, "passed", "0 passed"},
		"very many":     {state.RunSucceeded, slices.Repeat([]state.CheckResult{{Name: "a", Code: 1}}, 50), "failed", strings.Repeat("a, ", 20) + "others failed"},
		"could not run": {state.RunRetryable, []state.CheckResult{{Name: "test", Code: 1}}, "crashed", "it fell over"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.runChecks()
			run := l.task.Run.ID
			l.end(state.RunResult{Status: state.StatusCrashed, Class: c.class, Message: "it fell over", Checks: c.checks})
			for i := range l.task.Runs {
				if r := &l.task.Runs[i]; r.ID == run {
					if v, words := r.Verdict(); v != c.verdict || words != c.want {
						t.Errorf("got verdict %q, %q", v, words)
					}
					return
				}
			}
			t.Error("got an active run, want it filed")
		})
	}
}

// A missed gate returns to the agent like a failing check, with its figure instead of an exit code.
func TestMissedGateReturnsToTheAgent(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.runChecks()
	l.end(state.RunResult{Checks: []state.CheckResult{
		{Name: "test"}, {Name: "coverage: 50 %", Command: "coverage: 50 %", Code: 1, Gate: true, Tail: "a.go: 3"}, {Name: "vet", Command: "go vet", Code: 2, Tail: "a.go is odd"},
	}})
	var got []string
	for _, f := range l.task.Feedback {
		if f.Kind == state.FeedbackChecks {
			got = append(got, f.Body)
		}
	}
	want := []string{"`coverage: 50 %` failed:\na.go: 3", "`go vet` failed with exit code 2:\na.go is odd"}
	if diff := cmp.Diff(want, got); diff != "" || l.task.Run == nil || l.task.Run.Kind != state.RunImplement {
		t.Errorf("run %+v, feedback (-want +got):\n%s", l.task.Run, diff)
	}
}

// Refusals are stored with their time and run, up to a limit on refusals and on rules.
func TestGateRefusalsAreStored(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.runChecks()
	l.end(state.RunResult{Checks: []state.CheckResult{{Name: "test"}}})
	run := l.task.Work.Run
	judged := event.Collected{Refusals: []state.Refusal{
		{Rule: "protected-paths", Path: "ci.yml", Detail: "this path is protected", Remedy: "leave it out"},
		{Rule: "size", Path: strings.Repeat("ä", 4000), Detail: strings.Repeat("x", 4000)},
	}}
	for i := range 2 * maxGateRules {
		judged.Refusals = append(judged.Refusals, state.Refusal{Rule: "secrets", Path: fmt.Sprint(i), Detail: "it looks like a key"})
	}
	c := &change{t: l.task, e: event.Event{Now: l.now, Payload: judged}}
	for range maxGateRefusals + 5 {
		storeGateRefusals(c)
	}
	if n := len(l.task.GateRefusals); n != maxGateRefusals {
		t.Fatalf("got %d stored refusals", n)
	}
	got := l.task.GateVerdicts()[0]
	const start, end = "protected-paths in ci.yml: this path is protected; size in ää", "…; secrets in 0: it looks like a key; secrets in 1: it looks like a key; secrets in 2: it looks like a key; and 7 more"
	if judged.Refusals[0].Remedy == "" || len(got.Message) > 1000 {
		t.Error("got changed refusals in the comment or unbounded stored ones, want neither")
	}
	if !strings.HasPrefix(got.Message, start) || !strings.HasSuffix(got.Message, end) {
		t.Errorf("got message %q", got.Message)
	}
	got.Message = ""
	seq := l.task.Runs[len(l.task.Runs)-2].Seq // of the agent, before the checks
	if diff := cmp.Diff(state.Verdict{At: l.now, Subject: fmt.Sprintf("changes of run %d", seq), Verdict: "refused by the push gate"}, got); diff != "" {
		t.Errorf("verdict of %s (-want +got):\n%s", run, diff)
	}
}

// The known reason for the loss of a VM is stored, or that it is unknown.
func TestEndReasonOfLostVM(t *testing.T) {
	t.Parallel()
	for given, want := range map[state.VMEndReason]state.VMEndReason{"": "vanished", state.VMEndDiskFull: state.VMEndDiskFull} {
		l := newLife(t)
		l.toPreliminary()
		l.approve()
		l.launch()
		l.end(state.RunResult{Status: state.StatusVMLost, Class: state.RunRetryable, Message: "gone", VMEndReason: given})
		if l.task.VM != nil || l.task.VMs[len(l.task.VMs)-1].EndReason != want || jobOf(l.jobs, state.JobRelease).Args.Reason != string(want) {
			t.Errorf("%q: got VMs %+v, jobs %v", given, l.task.VMs, l.jobs)
		}
	}
}
