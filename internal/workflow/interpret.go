package workflow

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/internal/runner/work"
	"github.com/errand-bot/errand/internal/trust"
	"github.com/errand-bot/errand/state"
)

// Interpreter makes events and the judgement of one run, whether an agent's or the repository's
// checks. What a VM reports is untrusted: the judgement is the adapter's, texts are redacted.
type Interpreter struct {
	run    state.Run
	parser agent.Parser // nil for checks
	redact *trust.Redactor
	stderr []string
	checks []state.CheckResult
	done   *work.ChecksDone
}

// Interpret returns the interpreter of a run.
func (s *Steps) Interpret(t *state.Task, r *state.Run) *Interpreter {
	in := &Interpreter{run: *r, redact: s.Redact}
	if r.Kind != state.RunCheck {
		in.parser = s.Adapter.NewParser()
	}
	return in
}

// keptStderr is how many lines of standard error a judgement may look at.
const keptStderr = 50

// Line takes one line.
func (in *Interpreter) Line(l runlog.Line) []runlog.Event {
	if l.Stream == runlog.StreamStderr {
		in.stderr = append(in.stderr, l.Text)
		in.stderr = in.stderr[max(0, len(in.stderr)-keptStderr):]
	}
	if l.Stream != runlog.StreamStdout {
		return in.stamp(l, []runlog.Event{{Kind: runlog.KindNotice, Text: l.Text}})
	}
	if in.parser == nil {
		return in.stamp(l, in.check(l.Text))
	}
	return in.stamp(l, in.parser.Line([]byte(l.Text)))
}

// stamp numbers events and blanks secrets.
func (in *Interpreter) stamp(l runlog.Line, events []runlog.Event) []runlog.Event {
	for i := range events {
		events[i].Seq, events[i].Time = l.Seq, l.Time
		events[i].Text, _ = in.redact.Redact(events[i].Text)
		events[i].Input, _ = in.redact.Redact(events[i].Input)
	}
	return events
}

// check reads a result line of the repository's commands.
func (in *Interpreter) check(line string) []runlog.Event {
	var kind struct {
		Type string `json:"type"`
	}
	if json.Unmarshal([]byte(line), &kind) != nil {
		return nil
	}
	switch kind.Type {
	case work.TypeCheckResult:
		var r work.CheckResult
		if json.Unmarshal([]byte(line), &r) == nil && len(in.checks) < 100 {
			tail, _ := in.redact.Redact(r.Tail)
			in.checks = append(in.checks, state.CheckResult{Name: r.Name, Command: r.Name, Code: r.Code, TimedOut: r.TimedOut, Duration: r.Duration, Tail: tail})
			return []runlog.Event{{Kind: runlog.KindToolResult, ToolName: "check", Text: fmt.Sprintf("%s: exit code %d", r.Name, r.Code), IsError: r.Code != 0}}
		}
	case work.TypeChecksDone:
		var d work.ChecksDone
		if json.Unmarshal([]byte(line), &d) == nil {
			in.done = &d
		}
	}
	return nil
}

// Exit judges the run.
func (in *Interpreter) Exit(x runlog.Exit) state.RunResult {
	if in.parser == nil {
		return in.checksResult(x)
	}
	res := in.parser.Exit(agent.Ended{Exit: x, StopRequested: x.Cause == runlog.CauseStopped, Stderr: strings.Join(in.stderr, "\n"), WantSession: in.run.Session})
	out := state.RunResult{
		Status: string(res.Status), Class: string(res.Status.Class()), Message: in.clean(res.Message), Session: res.Session, Turns: res.Turns,
		Money: state.Money{
			InputTokens: res.Usage.Input + res.Usage.CacheRead + res.Usage.CacheWrite, OutputTokens: res.Usage.Output,
			MicroUSD: int64(math.Round(res.CostUSD * 1e6)),
		},
		Ended: x.EndedAt, RetryAt: res.ResetAt,
	}
	if res.Status == agent.StatusOK {
		in.outcome(res.Text, &out)
	}
	return out
}

// clean blanks secrets.
func (in *Interpreter) clean(text string) string {
	text, _ = in.redact.Redact(text)
	return text
}

// outcome reads what the agent concluded.
func (in *Interpreter) outcome(text string, out *state.RunResult) {
	o, rest, err := agent.ParseOutcome(text)
	if err != nil {
		out.Message = "the agent's closing block could not be read: " + err.Error()
	}
	kind := agent.OutcomeBuild
	if in.run.Kind == state.RunImplement || in.run.Kind == state.RunReview {
		kind = agent.OutcomeDone
	}
	out.Text, out.Outcome = in.clean(strings.TrimSpace(rest)), string(o.Or(kind))
	out.Question, out.Title, out.Summary = in.clean(o.Question), in.clean(o.Title), in.clean(o.Summary)
	out.Changes = in.clean(o.Changes)
	out.Files = o.Files
	for _, a := range o.Approaches {
		out.Approaches = append(out.Approaches, in.clean(a.Title))
	}
	if len(out.Approaches) == 1 || len(out.Approaches) > 3 {
		out.Approaches = out.Approaches[:min(len(out.Approaches), 3)]
	}
	for _, th := range o.Threads {
		out.Threads = append(out.Threads, state.ThreadAnswer{ID: string(th.ID), Answer: in.clean(th.Answer), Commit: th.Commit})
	}
	if e := o.Estimate; e != nil {
		out.Estimate = in.clean(estimate(*e))
	}
}

// estimate says in words what the agent expects.
func estimate(e agent.Estimate) string {
	var parts []string
	if e.Words != "" {
		parts = append(parts, e.Words)
	}
	if e.Size != "" {
		parts = append(parts, "size "+e.Size)
	}
	if e.Minutes > 0 {
		parts = append(parts, fmt.Sprintf("about %.0f min", e.Minutes))
	}
	if e.Turns > 0 {
		parts = append(parts, fmt.Sprintf("%.0f turns", e.Turns))
	}
	if e.CostUSD > 0 {
		parts = append(parts, fmt.Sprintf("$%.2f", e.CostUSD))
	}
	return strings.Join(parts, ", ")
}

// checksResult judges a run of the repository's commands: that they fail is a result, that they
// could not be run is not.
func (in *Interpreter) checksResult(x runlog.Exit) state.RunResult {
	out := state.RunResult{Status: "ok", Class: "success", Checks: in.checks, Ended: x.EndedAt}
	switch {
	case x.Cause == runlog.CauseStopped:
		out.Status, out.Class = "interrupted", "retryable"
	case x.Cause == runlog.CauseLost:
		out.Status, out.Class, out.Message = "lost", "retryable", "the checks were lost with their VM"
	case in.done == nil || in.done.Error != "":
		out.Status, out.Class, out.Message = "crashed", "fatal", "the checks could not be run"
		if in.done != nil {
			out.Message += ": " + in.clean(in.done.Error)
		}
	}
	return out
}
