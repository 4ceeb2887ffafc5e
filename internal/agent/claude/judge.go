package claude

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/agent/cli"
	"github.com/errand-bot/errand/internal/runlog"
)

// result is the last line of a run.
type result struct {
	Subtype    string              `json:"subtype"`
	IsError    bool                `json:"is_error"`
	HTTP       int                 `json:"api_error_status"`
	Turns      int                 `json:"num_turns"`
	Result     string              `json:"result"`
	StopReason string              `json:"stop_reason"`
	Terminal   string              `json:"terminal_reason"`
	SessionID  string              `json:"session_id"`
	CostUSD    float64             `json:"total_cost_usd"`
	Errors     []string            `json:"errors"`
	Structured json.RawMessage     `json:"structured_output"`
	Models     map[string]modelUse `json:"modelUsage"`
	Since      map[string]modelUse `json:"model_usage_since_last_result"`
	Turn       turnUse             `json:"usage"`
	Denials    []map[string]any    `json:"permission_denials"`
}

// modelUse is the usage of one model in modelUsage: since the beginning of the session, or, in older versions
// (2.1.197), of the process.
type modelUse struct {
	Input      float64 `json:"inputTokens"`
	Output     float64 `json:"outputTokens"`
	CacheRead  float64 `json:"cacheReadInputTokens"`
	CacheWrite float64 `json:"cacheCreationInputTokens"`
	CostUSD    float64 `json:"costUSD"`
}

// turnUse is the usage of the last turn in the main conversation.
type turnUse struct {
	Input      float64 `json:"input_tokens"`
	Output     float64 `json:"output_tokens"`
	CacheRead  float64 `json:"cache_read_input_tokens"`
	CacheWrite float64 `json:"cache_creation_input_tokens"`
}

func (u turnUse) usage() runlog.Usage {
	return cli.Usage(u.Input, u.Output, u.CacheRead, u.CacheWrite)
}

// totalUsage adds up the usage of all models. Only this sum includes everything.
func totalUsage(models map[string]modelUse) runlog.Usage {
	var total runlog.Usage
	for _, m := range models {
		total = total.Add(cli.Usage(m.Input, m.Output, m.CacheRead, m.CacheWrite))
	}
	return total
}

// totalCost adds up the program's cost estimates for all models.
func totalCost(models map[string]modelUse) float64 {
	total := 0.0
	for _, m := range models {
		total += cli.Clamp(m.CostUSD, 0, 1e6)
	}
	return total
}

// usage returns the usage of this run. If the results do not report it separately, the count for a resumed session may
// include its earlier runs: it does if it covers the prior usage plus the last turn. The result is zero if the prior
// usage is unknown.
func (p *parser) usage(e agent.Ended) runlog.Usage {
	all := totalUsage(p.last.Models)
	switch {
	case p.counted:
		return p.own
	case e.WantSession == "":
		return all
	case e.Prior == nil:
		return runlog.Usage{}
	}
	if least := e.Prior.Add(p.last.Turn.usage()); cli.SubtractUsage(least, all) == (runlog.Usage{}) {
		return cli.SubtractUsage(all, *e.Prior)
	}
	return all
}

// cost returns the program's cost estimate for this run, whose usage is own. If only the cost of the whole session is
// known, it is prorated by tokens.
func (p *parser) cost(own runlog.Usage) float64 {
	if p.counted {
		return cli.Clamp(p.ownCost, 0, 1e6)
	}
	cost, all := cli.Clamp(p.last.CostUSD, 0, 1e6), totalUsage(p.last.Models)
	if own == all {
		return cost
	}
	return cost * float64(tokenCount(own)) / float64(max(tokenCount(all), 1))
}

// tokenCount returns the number of tokens of all kinds.
func tokenCount(u runlog.Usage) int64 { return u.Input + u.Output + u.CacheRead + u.CacheWrite }

// text returns the answer, or the error in its place, without the program's internal diagnostics.
func (r *result) text() string {
	errs := slices.DeleteFunc(slices.Clone(r.Errors), func(e string) bool { return strings.HasPrefix(e, "[ede_diagnostic]") })
	return cmp.Or(r.Result, strings.Join(errs, "\n"))
}

// Exit judges by the last result, the exit status, stderr and the request together: a "success" may be a failure
// (is_error), exit status 0 may be an interrupted run, and after a requested stop no result counts.
func (p *parser) Exit(e agent.Ended) agent.Result {
	r := agent.Result{Session: p.session, ResetAt: p.resetAt}
	if p.last != nil {
		r.Text = p.last.text()
		r.Session = cmp.Or(p.last.SessionID, p.session)
		r.Turns = p.last.Turns
		r.Usage = p.usage(e)
		r.CostUSD = p.cost(r.Usage)
		r.HTTP = p.last.HTTP
		r.Denials = p.last.denials()
		if s := p.last.Structured; len(s) > 0 && string(s) != "null" {
			r.Structured = s
		}
	}
	p.judge(e, r).Apply(&r)
	if r.Status == agent.StatusNoSession {
		r.Session = "" // the program created a new one
	}
	if r.Status == agent.StatusRateLimited && r.ResetAt.IsZero() {
		r.ResetAt = cli.ResetTime(r.Text, e.Exit.EndedAt)
	}
	return r
}

func (r *result) denials() []string {
	var names []string
	for _, d := range r.Denials {
		name, _ := d["tool_name"].(string)
		if name = cli.Truncate(name, 100); name != "" && len(names) < 100 {
			names = append(names, name)
		}
	}
	return names
}

// judge returns the status, by decreasing trust: errand's own knowledge, the runner's observations, and last the
// program's report.
func (p *parser) judge(e agent.Ended, r agent.Result) cli.Verdict {
	if s := cli.StatusOfCause(e); s != "" {
		return cli.Verdict{Status: s}
	}
	switch {
	case p.last == nil && p.cut != "" && e.Clean():
		return cli.Verdict{Status: agent.StatusAnswerCut, Reason: p.cut}
	case p.last == nil && strings.Contains(e.Stderr, noConversation):
		return cli.Verdict{Status: agent.StatusNoSession, Said: cli.LastLine(e.Stderr)}
	case p.last == nil:
		return cli.JudgeWithoutResult(e)
	}
	last := p.last
	if len(last.Errors) > 0 && strings.HasPrefix(last.Errors[0], noConversation) {
		return cli.Verdict{Status: agent.StatusNoSession, Said: last.Errors[0]}
	}
	switch last.Subtype {
	case "success":
	case "error_max_turns":
		return cli.Verdict{Status: agent.StatusMaxTurns, Said: last.text()}
	case "error_max_budget_usd":
		return cli.Verdict{Status: agent.StatusBudget, Said: last.text()}
	case "error_max_structured_output_retries":
		return cli.Verdict{Status: agent.StatusNoStructuredOutput, Said: last.text()}
	default:
		if strings.HasPrefix(last.Terminal, "aborted_") {
			return cli.Verdict{Status: agent.StatusInterrupted, Said: last.text()}
		}
		return cli.Verdict{Status: agent.StatusCrashed, Said: cmp.Or(last.text(), last.Subtype)}
	}
	if last.IsError {
		return p.apiFailure(last)
	}
	return p.success(e, r)
}

const noConversation = "No conversation found"

// success checks the conditions of a success besides the reported one.
func (p *parser) success(e agent.Ended, r agent.Result) cli.Verdict {
	switch {
	case e.Exit.Code != 0 || e.Exit.Signal != "":
		return cli.Verdict{Status: agent.StatusCrashed, Reason: cli.ReasonFailedExit(e), Said: cli.LastLine(e.Stderr)}
	case e.WantSession != "" && r.Session != e.WantSession:
		return cli.Verdict{Status: agent.StatusNoSession, Reason: cli.ReasonOtherSession}
	case p.after:
		return cli.Verdict{Status: agent.StatusCrashed, Reason: "the agent continued to work after its answer and ended without a new one"}
	case p.last.Turns == 0:
		return cli.Verdict{Status: agent.StatusNoOp, Said: p.last.Result}
	case p.last.Terminal == "hook_stopped":
		return cli.Verdict{Status: agent.StatusHookStopped, Said: p.last.Result}
	case p.last.StopReason == "refusal":
		return cli.Verdict{Status: agent.StatusRefused, Reason: cli.ReasonDeclined, Said: p.last.Result}
	case e.WantSchema && !json.Valid(r.Structured):
		return cli.Verdict{Status: agent.StatusNoStructuredOutput}
	}
	return cli.Verdict{Status: agent.StatusOK}
}

// apiFailure classifies a run that an error of the model's API ended.
func (p *parser) apiFailure(r *result) cli.Verdict {
	if r.StopReason == "refusal" {
		return cli.Verdict{Status: agent.StatusRefused, Reason: cli.ReasonDeclined, Said: r.Result}
	}
	return cli.Verdict{Status: p.apiStatus(r), Said: r.Result}
}

func (p *parser) apiStatus(r *result) agent.Status {
	switch {
	case r.Terminal == "prompt_too_long", r.HTTP == http.StatusRequestEntityTooLarge:
		return agent.StatusContextOverflow
	case r.HTTP == http.StatusPaymentRequired, p.lastErr == "billing_error":
		return agent.StatusBilling
	case r.HTTP == http.StatusTooManyRequests, p.lastErr == "rate_limit":
		return agent.StatusRateLimited
	case r.HTTP == http.StatusUnauthorized, r.HTTP == http.StatusForbidden, p.lastErr == "authentication_failed":
		return agent.StatusAuth
	case r.HTTP >= http.StatusInternalServerError:
		return agent.StatusOverloaded
	case r.HTTP >= http.StatusBadRequest:
		return agent.StatusInvalid
	case strings.Contains(r.Result, "Unable to connect"), p.lastErr == "server_error":
		return agent.StatusNetwork
	}
	return agent.StatusCrashed
}
