package api

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/agent/cli"
	"github.com/errand-bot/errand/internal/agent/partialjson"
	"github.com/errand-bot/errand/internal/agentloop/wire"
	"github.com/errand-bot/errand/internal/runlog"
)

// parser reads the output of errand's own agent. It adds up the usage of all answers, so that the usage of a killed
// run is known, too.
type parser struct {
	session string
	usage   runlog.Usage
	turns   int
	last    *wire.Result
	cut     string // set if an overlong line may have been the result: the reason, for people
}

var _ agent.Parser = (*parser)(nil)

func (p *parser) Line(line []byte) []runlog.Event {
	var l wire.Line
	if json.Unmarshal(line, &l) != nil {
		return nil
	}
	e := runlog.Event{Text: cli.EventText(l.Text), IsError: l.IsError}
	switch l.Type {
	case wire.TypeStarted:
		p.session = cli.Truncate(l.Session, 100)
		e = runlog.Event{Kind: runlog.KindStarted, Session: p.session, Model: cli.EventText(l.Model)}
	case wire.TypeText:
		e = runlog.Event{Kind: runlog.KindText, Text: cli.OwnText(l.Text)}
	case wire.TypeThinking:
		e.Kind = runlog.KindThinking
	case wire.TypeToolUse:
		e = runlog.Event{
			Kind: runlog.KindToolUse, ToolID: cli.EventText(l.ID), ToolName: cli.EventText(l.Name), Input: cli.EventText(string(l.Input)),
		}
	case wire.TypeToolResult:
		e.Kind, e.ToolID = runlog.KindToolResult, cli.EventText(l.ID)
	case wire.TypeRetry:
		e.Kind, e.IsError = runlog.KindRetry, true
		e.Delay = time.Duration(cli.Clamp(float64(l.DelayMS), 0, 3.6e6)) * time.Millisecond
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
func (p *parser) Cut(line []byte, _ int) []runlog.Event {
	whole, at := partialjson.Complete(line)
	var l wire.Line
	_ = json.Unmarshal(whole, &l) // an unreadable line has no type
	switch {
	case l.Type == "", partialjson.At(at, "type"):
		p.cut = cli.ReasonMissingOutput // its type is unknown
	case l.Type == wire.TypeResult && (l.Result == nil || l.Result.Cause == wire.CauseOK):
		p.last, p.cut = nil, cli.ReasonTooLong
	default:
		return p.Line(whole)
	}
	return nil
}

// count adds the tokens of one answer, clamped to plausible values.
func (p *parser) count(u runlog.Usage) {
	p.turns++
	p.usage = p.usage.Add(cli.Usage(float64(u.Input), float64(u.Output), float64(u.CacheRead), float64(u.CacheWrite)))
}

func (p *parser) result(r *wire.Result) []runlog.Event {
	if r == nil {
		return nil
	}
	p.last = r
	usage := p.usage
	return []runlog.Event{
		{Kind: runlog.KindUsage, Usage: &usage},
		{
			Kind: runlog.KindResult, Text: cli.OwnText(cmp.Or(r.Text, r.Message)), Session: cli.Truncate(r.Session, 100),
			IsError: r.Cause != wire.CauseOK,
		},
	}
}

// Exit judges by errand's own knowledge first, then by the runner's observations, and last by the agent's own report. A
// reported success counts only if neither the exit status nor the session contradicts it.
func (p *parser) Exit(e agent.Ended) agent.Result {
	r := agent.Result{Session: p.session, Usage: p.usage, Turns: p.turns}
	if p.last != nil {
		r.Text, r.HTTP = p.last.Text, p.last.HTTP
		r.Session = cmp.Or(cli.Truncate(p.last.Session, 100), p.session)
		if s := p.last.Structured; len(s) > 0 && string(s) != "null" {
			r.Structured = s
		}
		for i := 0; i < len(p.last.Denials) && i < 100; i++ {
			r.Denials = append(r.Denials, cli.Truncate(p.last.Denials[i], 100))
		}
		const farthest = 4102444800 // the year 2100
		if at := p.last.ResetAt; at > 0 && at < farthest {
			r.ResetAt = time.Unix(at, 0).UTC()
		}
	}
	p.judge(e, r).Apply(&r)
	if r.Status == agent.StatusNoSession {
		r.Session = ""
	}
	return r
}

func (p *parser) judge(e agent.Ended, r agent.Result) cli.Verdict {
	if s := cli.StatusOfCause(e); s != "" {
		return cli.Verdict{Status: s}
	}
	switch {
	case p.last == nil && p.cut != "" && e.Clean():
		return cli.Verdict{Status: agent.StatusAnswerCut, Reason: p.cut}
	case p.last == nil:
		return cli.JudgeWithoutResult(e)
	}
	status, ok := statuses()[p.last.Cause]
	switch {
	case !ok:
		return cli.Verdict{Status: agent.StatusCrashed, Said: cmp.Or(p.last.Message, fmt.Sprintf("ended as %q", cli.Truncate(p.last.Cause, 40)))}
	case status != agent.StatusOK:
		return cli.Verdict{Status: status, Said: p.last.Message}
	case e.Exit.Code != 0 || e.Exit.Signal != "":
		return cli.Verdict{Status: agent.StatusCrashed, Reason: cli.ReasonFailedExit(e), Said: cli.LastLine(e.Stderr)}
	case e.WantSession != "" && r.Session != e.WantSession:
		return cli.Verdict{Status: agent.StatusNoSession, Reason: cli.ReasonOtherSession}
	case p.turns == 0:
		return cli.Verdict{Status: agent.StatusNoOp}
	case e.WantSchema && !json.Valid(r.Structured):
		return cli.Verdict{Status: agent.StatusNoStructuredOutput}
	}
	return cli.Verdict{Status: agent.StatusOK}
}

// statuses returns the statuses that the agent may report. It omits those that only errand or the runner can know.
func statuses() map[string]agent.Status {
	return map[string]agent.Status{
		wire.CauseOK:              agent.StatusOK,
		wire.CauseMaxTurns:        agent.StatusMaxTurns,
		wire.CauseRateLimited:     agent.StatusRateLimited,
		wire.CauseOverloaded:      agent.StatusOverloaded,
		wire.CauseNetwork:         agent.StatusNetwork,
		wire.CauseAuth:            agent.StatusAuth,
		wire.CauseBilling:         agent.StatusBilling,
		wire.CauseBudget:          agent.StatusBudget,
		wire.CauseContextOverflow: agent.StatusContextOverflow,
		wire.CauseRefused:         agent.StatusRefused,
		wire.CauseNoSession:       agent.StatusNoSession,
		wire.CauseNoAnswer:        agent.StatusNoStructuredOutput,
		wire.CauseInterrupted:     agent.StatusInterrupted,
		wire.CauseInvalid:         agent.StatusInvalid,
		wire.CauseCrashed:         agent.StatusCrashed,
	}
}
