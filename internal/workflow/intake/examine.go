package intake

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/forge/green"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

const (
	// rerunTime is how long a check that was run again may take until GitHub shows the new run.
	rerunTime = 10 * time.Minute
	// workflowTime is how long errand waits before it asks again for a run of a job whose workflow still runs. It is doubled with each wait,
	// maxWaits times: other jobs of a workflow can wait for people.
	workflowTime = time.Minute
	maxWaits     = 6
	// logTries is the number of attempts after which an agent gets failing checks without their logs, if the logs' host fails.
	logTries = 3
	// logsTime is the time after which no further log is read: the job ends before its lease does.
	logsTime = 40 * time.Second
	// maxExamined is the maximum number of failing checks that one round repairs.
	maxExamined = 10
)

// Examine finds out what failed in the checks of the pull request's head. It has each check run again once, and reports the causes for the
// agent if that did not help. Checks that also fail on the base, or have not run to their end, are left to people.
func (s *Steps) Examine(ctx context.Context, w *step.Attempt) (event.Event, error) {
	head := w.Task.Branch.Head
	if pr := w.Task.PR; pr == nil || pr.State != state.PROpen || head == "" || w.Task.Phase != state.PhasePROpen {
		return step.Done(), nil
	}
	report, err := s.GitHub.Checks(ctx, w.Repo, w.Task.PR.Number, head)
	if err != nil {
		return event.Event{}, fmt.Errorf("read the checks: %w", err)
	}
	v := green.Judge(report, s.Now(), s.ChecksQuiet)
	due := s.decisionDue(w.Task.PR, v)
	overdue := !due.IsZero() && !s.Now().Before(due)
	if report.Head != head || !v.Settled && !overdue { // a webhook comes
		return step.Done(), nil
	}
	x := &examination{Steps: s, w: w, out: event.ChecksExamined{Head: head}, begun: s.Now(), overdue: overdue}
	for _, c := range v.Failed {
		err := x.check(ctx, c)
		if err != nil && len(x.out.Reran) > 0 { // what runs again by now has to be known; the others are examined after that
			w.Log.Warn().Err(err).Msg("failed to examine a check")
			break
		}
		if err != nil {
			return event.Event{}, err
		}
	}
	if slices.ContainsFunc(x.out.Reran, func(r state.Rerun) bool { return r.Intended }) { // the rest follows when that is stored
		return event.Event{Payload: event.ChecksExamined{Head: head, Reran: x.out.Reran}}, nil
	}
	if overdue {
		x.notePending(v.Pending)
	}
	if x.out.Again.IsZero() {
		if err := x.explain(ctx); err != nil {
			return event.Event{}, err
		}
	}
	return event.Event{Payload: x.out}, nil
}

// examination is the state of one call of Examine.
type examination struct {
	*Steps
	w      *step.Attempt
	base   []green.Check // nil until they are read
	failed []green.Check // which an agent may be able to repair
	out    event.ChecksExamined
	begun  time.Time
	// overdue is set if errand does not wait any longer for checks that are not complete or not reported.
	overdue bool
	noLogs  string // why no log is read any more, a sentence
}

// check decides what happens to a failing check.
func (x *examination) check(ctx context.Context, c green.Check) error {
	note := state.CheckNote{Name: c.Name, URL: c.URL, Fault: state.CheckFails, Result: c.Result}
	switch {
	case !ranToItsEnd(c):
		note.Fault = state.CheckUnfinished
	case dcoName.MatchString(c.Name):
		note.Fault = state.CheckSignOff
	}
	if note.Fault != state.CheckFails {
		x.out.Notes = append(x.out.Notes, note)
		return nil
	}
	waits, err := x.rerun(ctx, c, &note)
	if err != nil || waits {
		return err
	}
	if x.base == nil {
		branch := cmp.Or(x.w.Task.Branch.Base, x.w.Task.Repo.DefaultBranch)
		if x.base, err = x.GitHub.CommitChecks(ctx, x.w.Repo, branch); err != nil {
			return fmt.Errorf("read the checks of the base branch: %w", err)
		}
		x.base = append(x.base, green.Check{}) // read, also if there are none
	}
	if failsOnBase(c, x.base) {
		note.Fault = state.CheckBroken
	} else {
		x.failed = append(x.failed, c)
	}
	x.out.Notes = append(x.out.Notes, note)
	return nil
}

// notePending names the checks for which errand does not wait any longer.
func (x *examination) notePending(list []green.Check) {
	for _, c := range list {
		note := state.CheckNote{Name: c.Name, URL: c.URL, Fault: state.CheckPending}
		if !c.Expected {
			note.Result = cmp.Or(c.Result, "pending")
		}
		x.out.Notes = append(x.out.Notes, note)
	}
}

// ranToItsEnd reports whether a check failed by itself, and was not canceled, replaced, never started, or left for somebody to act.
func ranToItsEnd(c green.Check) bool {
	return c.Status || c.Result == "failure" || c.Result == "timed out"
}

// rerun runs a check again if that was not done, and reports whether its result is awaited. The intention is stored first: after a crash, a
// failed run with another ID shows that GitHub was asked before.
func (x *examination) rerun(ctx context.Context, c green.Check, note *state.CheckNote) (waits bool, err error) {
	r := x.w.Task.PR.Repair
	old := r.RerunOf(c.Key(), x.out.Head)
	record := state.Rerun{Check: c.Key(), Name: c.Name, Head: x.out.Head, ID: c.ID, At: x.Now()}
	switch {
	case c.Status || c.ID == 0 || old != nil && old.ID != c.ID:
		return false, nil
	case old == nil:
		if r != nil && len(r.Reran)+len(x.out.Reran) >= state.MaxReruns || len(x.out.Reran) >= state.MaxReruns {
			return false, nil
		}
		record.Intended = true
		x.out.Reran = append(x.out.Reran, record)
		return true, nil
	case !old.Intended:
		until := old.At.Add(rerunTime)
		if !x.Now().Before(until) {
			return false, nil
		}
		x.await(until)
		return true, nil
	}
	switch err := x.GitHub.RerunCheck(ctx, x.w.Repo, c); {
	case errors.Is(err, forge.ErrCannotRerun):
		return false, nil
	case forge.NotGranted(err):
		note.Rerun = true
		return false, nil
	case errors.Is(err, forge.ErrStillRunning):
		if x.overdue || r.Waits > maxWaits {
			return false, nil
		}
		x.await(x.Now().Add(workflowTime << r.Waits))
		return true, nil
	case err != nil:
		return false, fmt.Errorf("run the check %q again: %w", c.Name, err)
	}
	x.out.Reran = append(x.out.Reran, record)
	x.await(x.Now().Add(rerunTime))
	return true, nil
}

// await has the checks read again at a time, at the latest.
func (x *examination) await(at time.Time) {
	if x.out.Again.IsZero() || at.Before(x.out.Again) {
		x.out.Again = at
	}
}

// failsOnBase reports whether all checks of the same name and App fail on the base branch, too. To which workflows they belong is unknown
// there.
func failsOnBase(c green.Check, base []green.Check) bool {
	found := false
	for _, b := range base {
		if b.Name != c.Name || b.App != c.App || b.Status != c.Status {
			continue
		}
		if b.State != green.Failure || !ranToItsEnd(b) {
			return false
		}
		found = true
	}
	return found
}

// explain reads why the checks failed that an agent may be able to repair.
func (x *examination) explain(ctx context.Context) error {
	if r := x.w.Task.PR.Repair; r != nil && r.Tried == x.out.Head {
		return nil
	}
	for i, c := range x.failed {
		if i == maxExamined {
			break
		}
		cause, err := x.cause(ctx, c)
		if err != nil {
			return fmt.Errorf("read why the check %q failed: %w", c.Name, err)
		}
		x.out.Failures = append(x.out.Failures, state.Feedback{
			ID: fmt.Sprintf("ci:%s:%d", state.ShortHash(x.out.Head), i+1), Kind: state.FeedbackCI, At: x.Now(), Body: x.causeText(c, cause), Head: x.out.Head, URL: c.URL, OnPR: true,
		})
	}
	return nil
}

// cause reads why a check failed. If the host of the logs fails repeatedly, or is slow, the cause says that the log is missing.
func (x *examination) cause(ctx context.Context, c green.Check) (green.Cause, error) {
	if x.noLogs == "" && !x.Now().Before(x.begun.Add(logsTime)) {
		x.noLogs = "The log was not read, because reading the others took too long."
	}
	missing := x.noLogs
	cause, err := x.GitHub.FailedCheck(ctx, x.w.Repo, c, missing == "")
	if errors.Is(err, forge.ErrLogUnavailable) && x.w.Job.Try() >= logTries {
		x.w.Log.Warn().Err(err).Str("check", c.Name).Msg("failed to read a log; the agent goes without it")
		missing, _ = forge.Explain(err)
		x.noLogs, err = missing, nil
	}
	if missing != "" && !c.Status {
		cause.Note = strings.TrimSpace(cause.Note + " " + missing)
	}
	return cause, err
}

// causeText returns the cause as data for the agent.
func (x *examination) causeText(c green.Check, cause green.Cause) string {
	var b strings.Builder
	fmt.Fprintf(&b, "check: %s\n", c.Name)
	add := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%s: %s\n", name, value)
		}
	}
	add("result", c.Result)
	add("failing step", cause.Step)
	add("title", cause.Title)
	add("not available", cause.Note)
	add("summary", first(cause.Summary, maxCausePart))
	if list := annotations(cause.Annotations); list != "" {
		b.WriteString("\nannotations:\n" + first(list, maxCausePart) + "\n")
	}
	if cause.Log != "" {
		b.WriteString("\nthe end of the log:\n" + last(cause.Log, maxCauseLog))
	}
	text, _ := x.Redact.Redact(b.String())
	return text
}

// The maximum numbers of characters of a cause's parts: a prompt shows the last 6,000 of the whole.
const (
	maxCausePart = 900
	maxCauseLog  = 3600
)

func annotations(list []green.Annotation) string {
	var lines []string
	for _, a := range list {
		at := a.Path
		if a.Line > 0 {
			at += fmt.Sprintf(":%d", a.Line)
		}
		lines = append(lines, "- "+strings.TrimPrefix(at+": "+a.Level+": "+a.Message, ": "))
	}
	return strings.Join(lines, "\n")
}

// first returns at most n characters from the beginning, and last from the end of a text.
func first(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n]) + " […]"
	}
	return s
}

func last(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return "[…] " + string(r[len(r)-n:])
	}
	return s
}

// flaky returns the names of checks that failed on this head, and succeeded when errand had them run again.
func flaky(t *state.Task, r green.Report) []string {
	var list []string
	for _, c := range green.Newest(r.Checks) {
		if old := t.PR.Repair.RerunOf(c.Key(), t.Branch.Head); old != nil && c.ID != old.ID && c.State == green.Success {
			list = append(list, c.Name)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
