package watch

import (
	"fmt"
	"time"

	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/state"
)

// finalRecord returns the final record of a run for its transcript. t is the task in the store, nil if it no longer exists.
func finalRecord(t *state.Task, run string, x runlog.Exit, res state.RunResult, now time.Time) runlog.End {
	if t != nil {
		if r := findRun(t, run); r != nil {
			res = r.FinalResult(res)
		}
	}
	e := runlog.End{
		Run: run, Iteration: 1, Turns: res.Turns, Ended: x.EndedAt, Cause: x.Cause, Code: x.Code, Signal: x.Signal,
		Class: runlog.Class(res.Class), Message: res.Message, ProgramError: res.ProgramError, RunnerNote: res.RunnerNote,
		Start:       x.StartedAt,
		InputTokens: res.Money.InputTokens, OutputTokens: res.Money.OutputTokens, CostMicroUSD: res.Money.MicroUSD,
	}
	if res.Class != state.RunSucceeded {
		e.Error = string(res.Status)
	}
	if t != nil {
		e.Task = fmt.Sprintf("%s#%d", t.Repo.FullName(), t.Key.Issue)
		if r := findRun(t, run); r != nil {
			fillFromTask(&e, t, r)
		}
	}
	if !e.Ended.IsZero() && (e.Ended.After(now) || e.Ended.Before(e.Start)) {
		e.Ended = now // the VM's clock is wrong
	}
	if !e.Start.IsZero() && e.Ended.After(e.Start) {
		e.Duration = e.Ended.Sub(e.Start)
	}
	return e
}

// UnreadRecord returns the final transcript record of a run that was stopped or never started and whose exit was not read. It
// contains the store's data on the run, including the reason why the task abandoned it.
func UnreadRecord(t *state.Task, r *state.Run) runlog.End {
	e := runlog.End{
		Run: r.ID, Iteration: 1, Turns: r.Turns, Start: r.Started, Ended: r.Ended, Cause: runlog.CauseLost,
		Class: runlog.ClassRetryable, Error: string(state.StatusInterrupted),
		InputTokens: r.Money.InputTokens, OutputTokens: r.Money.OutputTokens, CostMicroUSD: r.Money.MicroUSD,
	}
	if r.State == state.RunEnded && r.Status != "" {
		e.Class, e.Error = runlog.Class(r.Class), string(r.Status)
	}
	if e.Class == runlog.ClassSuccess {
		e.Error = ""
	}
	e.Task = fmt.Sprintf("%s#%d", t.Repo.FullName(), t.Key.Issue)
	fillFromTask(&e, t, r)
	if e.Message = r.Message; e.Message == "" && t.End != nil {
		e.Message = t.End.Reason
	}
	if e.Message != "" {
		e.Message += "; "
	}
	if r.Started.IsZero() {
		e.Message += "as far as is known, it never started"
	} else {
		e.Message += "its end could not be read from its VM"
	}
	if !e.Start.IsZero() && e.Ended.After(e.Start) {
		e.Duration = e.Ended.Sub(e.Start)
	}
	return e
}

// findRun returns the task's run, nil if it is no longer stored.
func findRun(t *state.Task, run string) *state.Run {
	if t.Run != nil && t.Run.ID == run {
		return t.Run
	}
	for i := range t.Runs {
		if t.Runs[i].ID == run {
			return &t.Runs[i]
		}
	}
	return nil
}

// fillFromTask fills in values for which the store is more reliable than the VM.
func fillFromTask(e *runlog.End, t *state.Task, r *state.Run) {
	e.VM, e.Step = r.VM, string(r.Kind)
	if !r.Started.IsZero() {
		e.Start = r.Started
	}
	if r.Metered {
		e.Metered, e.Subscription = true, r.Money.Subscription
		e.InputTokens, e.OutputTokens, e.CostMicroUSD = r.Money.InputTokens, r.Money.OutputTokens, r.Money.MicroUSD
	}
	for i := range t.Runs {
		if o := &t.Runs[i]; o.Kind == r.Kind && o.Round == r.Round && o.Seq < r.Seq {
			e.Iteration++
		}
	}
}
