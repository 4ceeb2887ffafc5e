package watch

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/state"
)

// TestFinalRecord: the store's values override the VM's, and unknown values stay empty.
func TestFinalRecord(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	run := func(seq int, kind state.RunKind, id string) state.Run {
		return state.Run{ID: id, Seq: seq, Kind: kind, RunLaunch: state.RunLaunch{VM: "vm-1"}, Started: noon}
	}
	metered := run(4, state.RunImplement, "r4")
	metered.Metered, metered.Money = true, state.Money{InputTokens: 100, OutputTokens: 10, MicroUSD: 5000}
	task := &state.Task{Key: state.TaskKey{Repo: 7, Issue: 3}, TaskIssue: state.TaskIssue{Repo: state.Repo{Owner: "acme", Name: "shop"}}, TaskRuns: state.TaskRuns{Run: &metered, Runs: []state.Run{
		run(1, state.RunPlan, "r1"), run(2, state.RunImplement, "r2"), run(3, state.RunCheck, "r3"),
	}}}
	said := state.RunResult{Class: state.RunRetryable, Status: state.StatusCrashed, Message: "it fell over", ProgramError: "zorp", Turns: 3, Money: state.Money{InputTokens: 1, OutputTokens: 2, MicroUSD: 3}}
	exit := runlog.Exit{Cause: runlog.CauseExited, Code: 7, StartedAt: noon.Add(-time.Hour), EndedAt: noon.Add(time.Minute)}
	want := runlog.End{
		Task: "acme/shop#3", Run: "r4", VM: "vm-1", Step: "implement", Iteration: 2, Start: noon, Ended: noon.Add(time.Minute), Duration: time.Minute, Turns: 3,
		InputTokens: 100, OutputTokens: 10, CostMicroUSD: 5000, Metered: true, Cause: runlog.CauseExited, Code: 7,
		Class: runlog.ClassRetryable, Error: "crashed", Message: "it fell over", ProgramError: "zorp",
	}
	for name, tc := range map[string]struct {
		task   *state.Task
		run    string
		exit   runlog.Exit
		change func(*runlog.End)
	}{
		"the run that goes on": {task, "r4", exit, func(*runlog.End) {}},
		"an earlier one, not metered": {task, "r2", exit, func(e *runlog.End) {
			e.Run, e.Iteration, e.Metered, e.InputTokens, e.OutputTokens, e.CostMicroUSD = "r2", 1, false, 1, 2, 3
		}},
		"a VM that was lost": {task, "r4", runlog.Exit{Cause: runlog.CauseLost}, func(e *runlog.End) {
			e.Ended, e.Duration, e.Cause, e.Code = time.Time{}, 0, runlog.CauseLost, 0
		}},
		"a VM whose clock is wrong": {task, "r4", runlog.Exit{Cause: runlog.CauseExited, Code: 7, EndedAt: noon.Add(99 * time.Hour)}, func(e *runlog.End) {
			e.Ended, e.Duration = noon.Add(time.Hour), time.Hour
		}},
		"a task that is gone": {nil, "r4", exit, func(e *runlog.End) {
			*e = runlog.End{
				Run: "r4", Iteration: 1, Start: exit.StartedAt, Ended: exit.EndedAt, Duration: 61 * time.Minute, Turns: 3,
				InputTokens: 1, OutputTokens: 2, CostMicroUSD: 3, Cause: runlog.CauseExited, Code: 7, Class: runlog.ClassRetryable, Error: "crashed", Message: "it fell over", ProgramError: "zorp",
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := want
			tc.change(&want)
			if diff := cmp.Diff(want, finalRecord(tc.task, tc.run, tc.exit, said, noon.Add(time.Hour))); diff != "" {
				t.Errorf("record (-want +got):\n%s", diff)
			}
		})
	}
}

// TestUnreadRecord: the record of a run whose exit was not read contains the store's data.
func TestUnreadRecord(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	task := &state.Task{Key: state.TaskKey{Repo: 7, Issue: 3}, TaskIssue: state.TaskIssue{Repo: state.Repo{Owner: "acme", Name: "shop"}}, TaskPhase: state.TaskPhase{End: &state.End{Reason: "@ada cancelled it"}}, TaskRuns: state.TaskRuns{Runs: []state.Run{
		{ID: "r1", Seq: 1, Kind: state.RunPlan, State: state.RunEnded, RunVerdict: state.RunVerdict{Message: "no VM was available"}},
		{ID: "r2", Seq: 2, Kind: state.RunPlan, RunLaunch: state.RunLaunch{VM: "vm-1"}, State: state.RunEnded, Started: noon, Ended: noon.Add(time.Minute), RunActivity: state.RunActivity{Turns: 3}, RunUsage: state.RunUsage{Metered: true, Money: state.Money{InputTokens: 10, OutputTokens: 2, MicroUSD: 4}}},
	}}}
	for i, want := range []runlog.End{
		{Task: "acme/shop#3", Run: "r1", Step: "plan", Iteration: 1, Cause: runlog.CauseLost, Class: runlog.ClassRetryable, Error: "interrupted", Message: "no VM was available; as far as is known, it never started"},
		{
			Task: "acme/shop#3", Run: "r2", VM: "vm-1", Step: "plan", Iteration: 2, Start: noon, Ended: noon.Add(time.Minute), Duration: time.Minute, Turns: 3, Metered: true,
			InputTokens: 10, OutputTokens: 2, CostMicroUSD: 4, Cause: runlog.CauseLost, Class: runlog.ClassRetryable, Error: "interrupted", Message: "@ada cancelled it; its end could not be read from its VM",
		},
	} {
		if diff := cmp.Diff(want, UnreadRecord(task, &task.Runs[i])); diff != "" {
			t.Errorf("run %d (-want +got):\n%s", i+1, diff)
		}
	}
}

// TestEventsAreLogged: the debug log has one line per event, with long texts cut.
func TestEventsAreLogged(t *testing.T) {
	t.Parallel()
	for level, want := range map[zerolog.Level]int{zerolog.DebugLevel: 2, zerolog.InfoLevel: 0} {
		var log bytes.Buffer
		f := following{run: "r4", task: state.TaskKey{Repo: 7, Issue: 3}, s: &Supervisor{cfg: SupervisorConfig{Log: zerolog.New(&log).Level(level)}}}
		f.logEvents([]runlog.Event{{Seq: 1, Kind: runlog.KindToolUse, ToolName: "Bash"}, {Seq: 1, Kind: runlog.KindText, Text: strings.Repeat("x", 5000)}})
		if got := log.String(); strings.Count(got, "\n") != want || strings.Count(got, `"run":"r4"`) != want || len(got) > 1000 {
			t.Errorf("at %s: %s", level, got)
		}
	}
}

// TestProgramErrorIsLogged: the log contains a failed program's own message, with the task and the run.
func TestProgramErrorIsLogged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		res    state.RunResult
		logged bool
	}{
		"a failure":          {state.RunResult{Status: state.StatusOverloaded, Class: state.RunRetryable, ProgramError: "zorp at capacity"}, true},
		"nothing said":       {state.RunResult{Status: state.StatusCrashed, Class: state.RunRetryable, Message: "it fell over"}, false},
		"logged as an error": {state.RunResult{Status: state.StatusStartFailed, Class: state.RunFatal, ProgramError: "zorp at capacity"}, false},
		"a success":          {state.RunResult{Status: state.StatusOK, Class: state.RunSucceeded}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			f := following{run: "r4", task: state.TaskKey{Repo: 7, Issue: 3}, s: &Supervisor{cfg: SupervisorConfig{Log: zerolog.New(&log)}}}
			f.logFailure(c.res)
			if !c.logged && log.Len() > 0 {
				t.Errorf("got log %s", log.String())
			}
			for _, want := range []string{`"level":"warn"`, `"task":"7/3"`, `"run":"r4"`, `"program_error":"zorp at capacity"`} {
				if c.logged && !strings.Contains(log.String(), want) {
					t.Errorf("want %s, got log %s", want, log.String())
				}
			}
		})
	}
}

// TestMissingProgramIsLogged: the error log names the program to install and the place where it is missing. Other ends
// of runs are not logged as errors.
func TestMissingProgramIsLogged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status  state.RunStatus
		adapter string
		says    []string
	}{
		"claude":      {state.StatusStartFailed, "claude", []string{`"level":"error"`, "npm install -g @anthropic-ai/claude-code", `"vm":"vm-1"`, `"task":"7/3"`, "claude: not found"}},
		"codex":       {state.StatusStartFailed, "codex", []string{`"level":"error"`, "npm install -g @openai/codex"}},
		"gemini":      {state.StatusStartFailed, "gemini", []string{`"level":"error"`, "npm install -g @google/gemini-cli"}},
		"a command":   {state.StatusStartFailed, "command", []string{`"level":"error"`, "the program that the adapter's `command` names"}},
		"it crashed":  {state.StatusCrashed, "claude", nil},
		"it was fine": {state.StatusOK, "claude", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			f := following{run: "r4", task: state.TaskKey{Repo: 7, Issue: 3}, s: &Supervisor{cfg: SupervisorConfig{Log: zerolog.New(&log)}}}
			task := &state.Task{TaskRuns: state.TaskRuns{Runs: []state.Run{{ID: "r4", RunLaunch: state.RunLaunch{Adapter: c.adapter, VM: "vm-1"}}}}}
			f.logStartFailure(task, state.RunResult{Status: c.status, ProgramError: "sh: claude: not found"})
			for _, want := range c.says {
				if !strings.Contains(log.String(), want) {
					t.Errorf("want %q, got log %s", want, log.String())
				}
			}
			if c.says == nil && log.Len() > 0 {
				t.Errorf("got log %s", log.String())
			}
			f.logStartFailure(nil, state.RunResult{Status: c.status}) // the task no longer exists
		})
	}
}

// TestTranscriptHasTheTasksReason: the final record contains errand's reason for the end of a run, not the
// program's interpretation.
func TestTranscriptHasTheTasksReason(t *testing.T) {
	t.Parallel()
	crashed := state.RunResult{Status: state.StatusCrashed, Class: state.RunRetryable, Message: "403 Forbidden"}
	stopped := state.RunResult{Status: state.StatusInterrupted, Class: state.RunRetryable}
	for name, tc := range map[string]struct {
		run  state.Run
		res  state.RunResult
		want runlog.End
	}{
		"a cap":          {state.Run{State: state.RunActive, RunUsage: state.RunUsage{RunDenial: &state.Waiting{Kind: state.WaitMoney, Detail: "The cap is reached."}}}, crashed, runlog.End{Class: runlog.ClassFatal, Error: "budget", Message: "The cap is reached."}},
		"a limit":        {state.Run{State: state.RunActive, RunUsage: state.RunUsage{RunDenial: &state.Waiting{Kind: state.WaitLimit, Detail: "A limit.", Until: time.Now()}}}, crashed, runlog.End{Class: runlog.ClassRetryable, Error: "rate_limited", Message: "A limit."}},
		"it asked":       {state.Run{State: state.RunActive, RunVerdict: state.RunVerdict{Conclusion: &state.Conclusion{Outcome: "question", Question: "Which?"}}}, crashed, runlog.End{Class: runlog.ClassSuccess, Message: "403 Forbidden"}},
		"it was stopped": {state.Run{State: state.RunStopping}, stopped, runlog.End{Class: runlog.ClassRetryable, Error: "interrupted"}},
		"stopped for its turns": {state.Run{State: state.RunEnded, RunVerdict: state.RunVerdict{Status: state.StatusMaxTurns, Class: state.RunFatal, Message: "Its turns are used up."}}, stopped,
			runlog.End{Class: runlog.ClassFatal, Error: "max_turns", Message: "Its turns are used up."}},
		"stopped as it asked": {state.Run{State: state.RunEnded, RunVerdict: state.RunVerdict{Status: state.StatusInterrupted, Class: state.RunSucceeded, Message: "It asked a question."}}, stopped,
			runlog.End{Class: runlog.ClassSuccess, Message: "It asked a question."}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.run.ID = "r1"
			task := &state.Task{TaskRuns: state.TaskRuns{Runs: []state.Run{tc.run}}}
			if tc.run.State != state.RunEnded {
				task = &state.Task{TaskRuns: state.TaskRuns{Run: &tc.run}}
			}
			got := finalRecord(task, "r1", runlog.Exit{Cause: runlog.CauseExited}, tc.res, time.Now())
			if diff := cmp.Diff(tc.want, runlog.End{Class: got.Class, Error: got.Error, Message: got.Message}); diff != "" {
				t.Errorf("record (-want +got):\n%s", diff)
			}
			if tc.run.State != state.RunEnded {
				return
			}
			if unread := UnreadRecord(task, &task.Runs[0]); unread.Class != tc.want.Class || unread.Error != tc.want.Error {
				t.Errorf("got class %s, error %s", unread.Class, unread.Error)
			}
		})
	}
}
