// Package result reads the output of runs: the events of an agent's program, how its run ended and why, and the
// conclusion in its last message, which a second run may repair.
//
// Start with Interpreter.
package result

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/gates"
	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/internal/runner/work"
	"github.com/errand-bot/errand/internal/trust"
	"github.com/errand-bot/errand/state"
)

// An Interpreter turns the output of one run, by an agent or of the repository's checks, into events and the run's
// result. The output is untrusted: the adapter decides how the run ended, and texts are redacted and limited.
type Interpreter struct {
	run    state.Run
	prior  *runlog.Usage // the tokens that earlier runs of its session used
	parser agent.Parser  // nil for checks
	form   bool          // its answer has to match a JSON schema
	redact *trust.Redactor
	lines  map[runlog.Stream]*trust.Lines
	stderr []string
	said   string // the end of the agent's messages
	free   bool   // on a subscription: the agent's cost in dollars is wrong
	checks []state.CheckResult
	done   *work.ChecksDone
	gates  int  // results of gates that its checks have to have
	cut    bool // a line of its checks was too long, so its content is not known
}

// Config has the dependencies of interpreters.
type Config struct {
	Agents Agents
	Redact *trust.Redactor
	// Providers names the provider of models of each adapter.
	Providers map[string]string
	// Subscribed marks providers that are paid by subscription.
	Subscribed map[string]bool
}

// Agents has the adapters of agents; *registry.Registry is one.
type Agents interface {
	// Of returns an adapter by its name, for the output of a run.
	Of(name string) agent.Adapter
}

// New returns the interpreter of a task's run.
func New(cfg Config, t *state.Task, r *state.Run) *Interpreter {
	in := &Interpreter{run: *r, prior: prior(t, r), redact: cfg.Redact, lines: map[runlog.Stream]*trust.Lines{}}
	in.free = cfg.Subscribed[cfg.Providers[r.Adapter]]
	if r.Kind == state.RunCheck {
		in.gates = gates.Gates(t.Settings.Gates).Count()
	} else {
		adapter := cfg.Agents.Of(r.Adapter)
		in.parser, in.form = adapter.NewParser(), r.Repair != nil && adapter.Capabilities().Schema
	}
	return in
}

// Limits on the standard error that is examined: lines, and bytes of each.
const (
	keptStderr     = 50
	keptStderrLine = 8 << 10
)

// Line takes one line.
func (in *Interpreter) Line(l runlog.Line) []runlog.Event {
	if !strings.HasPrefix(strings.TrimSpace(l.Text), "{") { // an event has its texts redacted when it has been read
		if in.lines[l.Stream] == nil {
			in.lines[l.Stream] = in.redact.Lines()
		}
		l.Text = in.lines[l.Stream].Line(l.Text)
	}
	if l.Stream == runlog.StreamStderr {
		in.stderr = append(in.stderr, strings.ToValidUTF8(l.Text[max(0, len(l.Text)-keptStderrLine):], ""))
		in.stderr = in.stderr[max(0, len(in.stderr)-keptStderr):]
		if p, ok := in.parser.(agent.StderrParser); ok {
			p.StderrLine(l.Text)
		}
	}
	if l.Stream != runlog.StreamStdout {
		switch {
		case l.Stream != runlog.StreamRunner:
		case in.parser != nil:
			agent.ParseMissing(in.parser, l)
		default:
			in.cut = in.cut || l.Cut > 0 // the omitted part may contain a result
		}
		return in.stamp(l, []runlog.Event{{Kind: runlog.KindNotice, Text: l.Text}})
	}
	if in.parser == nil {
		in.cut = in.cut || l.Cut > 0
		return in.stamp(l, in.check(l.Text))
	}
	events := in.stamp(l, agent.Parse(in.parser, l))
	for _, e := range events {
		if e.Kind == runlog.KindText {
			in.keepSaid(e.Text)
		}
	}
	return events
}

// stamp numbers events and blanks secrets.
func (in *Interpreter) stamp(l runlog.Line, events []runlog.Event) []runlog.Event {
	for i := range events {
		events[i].Seq, events[i].Time = l.Seq, l.Time
		events[i].Text, _ = in.redact.Redact(events[i].Text)
		events[i].Input, _ = in.redact.Redact(events[i].Input)
		events[i].ToolName, _ = in.redact.Redact(events[i].ToolName)
		events[i].Session, events[i].Model = in.clean(events[i].Session, maxLabel), in.clean(events[i].Model, maxLabel)
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
			tail = strings.ToValidUTF8(tail[max(0, len(tail)-maxNote):], "") // its end has the error
			r.Name, r.Skipped = in.clean(r.Name, maxLabel), in.clean(r.Skipped, maxLabel)
			in.checks = append(in.checks, state.CheckResult{
				Name: r.Name, Command: r.Name, Code: r.Code, TimedOut: r.TimedOut, Skipped: r.Skipped, Duration: r.Duration, Tail: tail, Gate: r.Gate,
			})
			if r.Skipped != "" {
				return []runlog.Event{{Kind: runlog.KindToolResult, ToolName: "check", Text: r.Name + ": skipped, " + r.Skipped}}
			}
			if r.Gate {
				return []runlog.Event{{Kind: runlog.KindToolResult, ToolName: "check", Text: r.Name, IsError: r.Code != 0}}
			}
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
	out := in.judged(x)
	if x.DiskFull && out.Class != state.RunSucceeded { // nothing can be done on this VM any more
		out.Status, out.Class, out.Message = state.StatusVMLost, state.RunRetryable, "the VM's disk was full"
		out.VMEndReason = state.VMEndDiskFull
	}
	return out
}

func (in *Interpreter) judged(x runlog.Exit) state.RunResult {
	if in.parser == nil {
		return in.checksResult(x)
	}
	res := in.parser.Exit(agent.Ended{
		Exit: x, StopRequested: x.Cause == runlog.CauseStopped, Stderr: strings.Join(in.stderr, "\n"),
		WantSession: in.run.Session, WantSchema: in.form, Prior: in.prior,
	})
	out := state.RunResult{
		Status: state.RunStatus(res.Status), Class: state.RunClass(res.Status.Class()), Session: in.clean(res.Session, maxLabel),
		Turns: res.Turns, Refused: len(res.Denials), Money: money(res.Usage, res.CostUSD), Used: used(res.Usage),
		Ended: x.EndedAt, RetryAt: res.ResetAt,
	}
	if in.free {
		out.Money.MicroUSD, out.Money.Subscription = 0, true
	}
	in.explain(res, x, &out)
	if res.Status == agent.StatusContextOverflow {
		out.Summary = in.clean(strings.TrimSpace(in.said), maxSaid)
	}
	if text, ok := in.answer(res); ok {
		out.Status, out.Class = state.StatusOK, state.RunSucceeded
		in.outcome(text, &out)
		in.empty(&out)
	} else {
		in.unrepaired(res.Status, &out)
	}
	return out
}

// empty judges a plan or a report without a word again: there is nothing to post, and nothing that people could
// approve. Tried again, the agent reads why.
func (in *Interpreter) empty(out *state.RunResult) {
	if in.run.Kind != state.RunPreliminary && in.run.Kind != state.RunPlan || out.Broken != "" || out.Text != "" {
		return
	}
	switch out.Outcome {
	case state.OutcomeReport, state.OutcomeAlreadyFixed, state.OutcomeNotReproducible:
		if out.Text = out.Summary; out.Text != "" {
			return
		}
	case state.OutcomeBuild, state.OutcomeRevised:
	default:
		return
	}
	out.Status, out.Class = state.StatusCrashed, state.RunRetryable
	out.Message = "the agent's last message contains neither a plan nor a report, and earlier messages do not count: the last message has to contain the whole answer"
}

// How many characters of a VM's reports are kept with the task: it must stay small enough to be
// stored, and a plan to be shown in full.
const (
	maxWords  = 40_000 // a plan, a report, a summary of the work
	maxNote   = 8_000  // an answer, a summary, the end of a check's output
	maxLabel  = 300    // a title, a name, an id
	maxChoice = 100    // an approach: its box shows as much
	maxList   = 200    // entries of a list
)

// clean removes secrets and invisible characters, and limits the length.
func (in *Interpreter) clean(text string, limit int) string {
	text, _ = in.redact.Redact(trust.RemoveInvisible(text))
	return runlog.Cut(text, limit)
}

// money returns the cost of a run as a VM reports it, limited to plausible amounts.
func money(u runlog.Usage, usd float64) state.Money {
	const most = 1_000_000 // dollars
	if !(usd > 0) {        // nor not a number
		usd = 0
	}
	return state.Money{
		InputTokens: max(u.Input, 0) + max(u.CacheRead, 0) + max(u.CacheWrite, 0), OutputTokens: max(u.Output, 0),
		MicroUSD: int64(math.Round(min(usd, most) * 1e6)),
	}
}

// used returns the agent's own count of tokens, nil if it has none.
func used(u runlog.Usage) *state.Usage {
	if u == (runlog.Usage{}) {
		return nil
	}
	return &state.Usage{Input: max(u.Input, 0), Output: max(u.Output, 0), CacheRead: max(u.CacheRead, 0), CacheWrite: max(u.CacheWrite, 0)}
}

// prior adds up the tokens that the earlier runs of the session reported, nil if one of them reported none:
// the agent's count for the whole session then says nothing about this run.
func prior(t *state.Task, r *state.Run) *runlog.Usage {
	var sum runlog.Usage
	for i := range t.Runs {
		o := &t.Runs[i]
		if o.Seq >= r.Seq || r.Session == "" || o.Session != r.Session {
			continue
		}
		if o.Used == nil {
			return nil
		}
		sum = sum.Add(runlog.Usage(*o.Used))
	}
	return &sum
}

// maxApproaches is how many ways a preliminary plan may offer.
const maxApproaches = 3

// outcome reads the agent's conclusion.
func (in *Interpreter) outcome(text string, out *state.RunResult) {
	o, rest, err := in.parse(text)
	if err != nil {
		o = in.unread(text, err, out)
	}
	out.Text = in.clean(strings.TrimSpace(rest), maxWords)
	in.repaired(out)
	in.concluded(o, out)
}

// concluded copies the closing block into the result.
func (in *Interpreter) concluded(o agent.Outcome, out *state.RunResult) {
	kind := agent.OutcomeBuild
	if in.run.Kind == state.RunImplement || in.run.Kind == state.RunReview {
		kind = agent.OutcomeDone
	}
	out.Outcome = state.Outcome(o.Or(kind))
	out.Question, out.Title, out.Summary = in.clean(o.Question, maxNote), in.clean(o.Title, maxLabel), in.clean(o.Summary, maxNote)
	out.Changes = in.clean(o.Changes, maxNote)
	for _, f := range o.Files[:min(len(o.Files), maxList)] {
		out.Files = append(out.Files, in.clean(f, maxLabel))
	}
	for _, a := range o.Approaches[:min(len(o.Approaches), maxList)] {
		out.Approaches = append(out.Approaches, in.clean(a.Title, maxChoice))
	}
	switch n := len(out.Approaches); {
	case n == 1:
		out.Approaches = nil // there is nothing to choose
	case n > maxApproaches:
		out.Approaches = out.Approaches[:maxApproaches]
	}
	for _, th := range o.Threads[:min(len(o.Threads), maxList)] {
		out.Threads = append(out.Threads, state.ThreadAnswer{ID: in.clean(string(th.ID), maxLabel),
			Answer: in.clean(th.Answer, maxNote), Commit: in.clean(th.Commit, maxLabel)})
	}
	if e := o.Estimate; e != nil {
		if in.free {
			e.CostUSD = 0
		}
		out.Estimate = in.clean(estimate(*e), maxLabel)
	}
}

// estimate returns the agent's estimate in words.
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
	out := state.RunResult{Status: state.StatusOK, Class: state.RunSucceeded, Checks: in.checks, Ended: x.EndedAt}
	switch {
	case x.Cause == runlog.CauseStopped:
		out.Status, out.Class = state.StatusInterrupted, state.RunRetryable
	case x.Cause == runlog.CauseLost:
		out.Status, out.Class, out.Message = state.StatusLost, state.RunRetryable, "the checks were lost with their VM"
	case in.cut:
		out.Status, out.Class, out.Message = state.StatusCrashed, state.RunFatal, "the output of the checks was too long to read"
	case in.done == nil || in.done.Error != "":
		out.Status, out.Class, out.Message = state.StatusCrashed, state.RunFatal, "the checks could not be run"
		if in.done != nil {
			out.ProgramError = in.clean(in.done.Error, maxNote)
		}
	default:
		sum := state.SummarizeChecks(in.checks)
		if !in.done.OK && len(sum.Failed) == 0 {
			out.Status, out.Class, out.Message = state.StatusCrashed, state.RunFatal, "a check failed, and its result is missing"
			break
		}
		if in.missesGate() {
			out.Status, out.Class, out.Message = state.StatusCrashed, state.RunFatal, "the result of a gate on changed code is missing"
			break
		}
		out.Message = in.clean(sum.Sentence(), maxNote)
	}
	return out
}

// missesGate reports whether a gate has no result. A gate never passes by absence.
func (in *Interpreter) missesGate() bool {
	n := 0
	for _, c := range in.checks {
		if c.Gate {
			n++
		}
	}
	return n < in.gates
}

// maxSaid is how many characters of an agent's last messages are kept for the next session.
const maxSaid = 4000

// keepSaid keeps the end of the agent's messages.
func (in *Interpreter) keepSaid(text string) {
	if text == "" {
		return
	}
	said := []rune(in.said + "\n\n" + text)
	in.said = string(said[max(0, len(said)-maxSaid):])
}
