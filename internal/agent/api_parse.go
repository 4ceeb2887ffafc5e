package agent

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/errand-bot/errand/internal/agentloop/wire"
	"github.com/errand-bot/errand/internal/runlog"
)

// apiParser reads the output of errand's own agent. It adds up the usage of all answers, so that the usage of a killed
// run is known, too.
type apiParser struct {
	session string
	usage   runlog.Usage
	turns   int
	last    *wire.Result
	cut     string // set if an overlong line may have been the result: the reason, for people
}

var _ Parser = (*apiParser)(nil)

func (p *apiParser) Line(line []byte) []runlog.Event {
	var l wire.Line
	if json.Unmarshal(line, &l) != nil {
		return nil
	}
	e := runlog.Event{Text: cutText(l.Text, maxEventText), IsError: l.IsError}
	switch l.Type {
	case wire.TypeStarted:
		p.session = cutText(l.Session, 100)
		e = runlog.Event{Kind: runlog.KindStarted, Session: p.session, Model: cutText(l.Model, maxEventText)}
	case wire.TypeText:
		e = runlog.Event{Kind: runlog.KindText, Text: cutText(l.Text, maxOwnText)}
	case wire.TypeThinking:
		e.Kind = runlog.KindThinking
	case wire.TypeToolUse:
		e = runlog.Event{
			Kind: runlog.KindToolUse, ToolID: cutText(l.ID, maxEventText), ToolName: cutText(l.Name, maxEventText), Input: cutText(string(l.Input), maxEventText),
		}
	case wire.TypeToolResult:
		e.Kind, e.ToolID = runlog.KindToolResult, cutText(l.ID, maxEventText)
	case wire.TypeRetry:
		e.Kind, e.IsError = runlog.KindRetry, true
		e.Delay = time.Duration(clamp(float64(l.DelayMS), 0, 3.6e6)) * time.Millisecond
	case wire.TypeNotice:
		e.Kind = runlog.KindNotice
	case wire.TypeUsage:
		if l.Usage == nil {
			return nil
		}
		p.count(*l.Usage)
		return nil // reported as a sum at the end
	case wire.TypeResult:
		return p.result(l.Result)
	default:
		return nil
	}
	return []runlog.Event{e}
}

// Cut reads the beginning of a line. Every type except the result is shown as far as it goes.
func (p *apiParser) Cut(line []byte, _ int) []runlog.Event {
	whole, at := closeJSON(line)
	var l wire.Line
	_ = json.Unmarshal(whole, &l) // an unreadable line has no type
	switch {
	case l.Type == "", cutIn(at, "type"):
		p.cut = cutNoResult // its type is unknown
	case l.Type == wire.TypeResult && (l.Result == nil || l.Result.Cause == wire.CauseOK):
		p.last, p.cut = nil, cutTooLong
	default:
		return p.Line(whole)
	}
	return nil
}

// count adds the tokens of one answer, clamped to plausible values.
func (p *apiParser) count(u wire.Usage) {
	p.turns++
	p.usage = p.usage.Add(runlog.Usage{
		Input: tokens(float64(u.Input)), Output: tokens(float64(u.Output)), CacheRead: tokens(float64(u.CacheRead)), CacheWrite: tokens(float64(u.CacheWrite)),
	})
}

func (p *apiParser) result(r *wire.Result) []runlog.Event {
	if r == nil {
		return nil
	}
	p.last = r
	usage := p.usage
	return []runlog.Event{
		{Kind: runlog.KindUsage, Usage: &usage},
		{
			Kind: runlog.KindResult, Text: cutText(firstOf(r.Text, r.Message), maxOwnText), Session: cutText(r.Session, 100),
			IsError: r.Cause != wire.CauseOK,
		},
	}
}

// Exit judges by errand's own knowledge first, then by the runner's observations, and last by the agent's own report. A
// reported success counts only if neither the exit status nor the session contradicts it.
func (p *apiParser) Exit(e Ended) Result {
	r := Result{Session: p.session, Usage: p.usage, Turns: p.turns}
	if p.last != nil {
		r.Text, r.HTTP = p.last.Text, p.last.HTTP
		r.Session = firstOf(cutText(p.last.Session, 100), p.session)
		if s := p.last.Structured; len(s) > 0 && string(s) != "null" {
			r.Structured = s
		}
		for i := 0; i < len(p.last.Denials) && i < 100; i++ {
			r.Denials = append(r.Denials, cutText(p.last.Denials[i], 100))
		}
		const farthest = 4102444800 // the year 2100
		if at := p.last.ResetAt; at > 0 && at < farthest {
			r.ResetAt = time.Unix(at, 0).UTC()
		}
	}
	r.judge(p.judge(e, r))
	if r.Status == StatusNoSession {
		r.Session = ""
	}
	return r
}

func (p *apiParser) judge(e Ended, r Result) verdict {
	if s := ofCause(e); s != "" {
		return verdict{status: s}
	}
	switch {
	case p.last == nil && p.cut != "" && e.clean():
		return verdict{status: StatusAnswerCut, why: p.cut}
	case p.last == nil:
		return silent(e)
	}
	status, ok := apiCauses()[p.last.Cause]
	switch {
	case !ok:
		return verdict{status: StatusCrashed, said: firstOf(p.last.Message, fmt.Sprintf("ended as %q", cutText(p.last.Cause, 40)))}
	case status != StatusOK:
		return verdict{status: status, said: p.last.Message}
	case e.Exit.Code != 0 || e.Exit.Signal != "":
		return verdict{status: StatusCrashed, why: endedBadly(e), said: lastLine(e.Stderr)}
	case e.WantSession != "" && r.Session != e.WantSession:
		return verdict{status: StatusNoSession, why: otherSession}
	case p.turns == 0:
		return verdict{status: StatusNoOp}
	case e.WantSchema && !json.Valid(r.Structured):
		return verdict{status: StatusNoStructuredOutput}
	}
	return verdict{status: StatusOK}
}

// apiCauses returns the statuses that the agent may report. It omits those that only errand or the runner can know.
func apiCauses() map[string]Status {
	return map[string]Status{
		wire.CauseOK: StatusOK, wire.CauseMaxTurns: StatusMaxTurns, wire.CauseRateLimited: StatusRateLimited, wire.CauseOverloaded: StatusOverloaded,
		wire.CauseNetwork: StatusNetwork, wire.CauseAuth: StatusAuth, wire.CauseBilling: StatusBilling, wire.CauseBudget: StatusBudget,
		wire.CauseContextOverflow: StatusContextOverflow, wire.CauseRefused: StatusRefused, wire.CauseNoSession: StatusNoSession,
		wire.CauseNoAnswer: StatusNoStructuredOutput, wire.CauseInterrupted: StatusInterrupted, wire.CauseInvalid: StatusInvalid, wire.CauseCrashed: StatusCrashed,
	}
}
