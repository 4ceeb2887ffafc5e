package agent

import (
	"encoding/json"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/runlog"
)

// claudeResult is the last line of a run.
type claudeResult struct {
	Subtype    string                    `json:"subtype"`
	IsError    bool                      `json:"is_error"`
	HTTP       int                       `json:"api_error_status"`
	Turns      int                       `json:"num_turns"`
	Result     string                    `json:"result"`
	StopReason string                    `json:"stop_reason"`
	Terminal   string                    `json:"terminal_reason"`
	SessionID  string                    `json:"session_id"`
	CostUSD    float64                   `json:"total_cost_usd"`
	Errors     []string                  `json:"errors"`
	Structured json.RawMessage           `json:"structured_output"`
	Models     map[string]claudeModelUse `json:"modelUsage"`
	Since      map[string]claudeModelUse `json:"model_usage_since_last_result"`
	Turn       claudeTurnUse             `json:"usage"`
	Denials    []map[string]any          `json:"permission_denials"`
}

// claudeModelUse is the usage of one model in modelUsage: since the beginning of the session, or, in older versions
// (2.1.197), of the process.
type claudeModelUse struct {
	Input      float64 `json:"inputTokens"`
	Output     float64 `json:"outputTokens"`
	CacheRead  float64 `json:"cacheReadInputTokens"`
	CacheWrite float64 `json:"cacheCreationInputTokens"`
	CostUSD    float64 `json:"costUSD"`
}

// claudeTurnUse is the usage of the last turn in the main conversation.
type claudeTurnUse struct {
	Input      float64 `json:"input_tokens"`
	Output     float64 `json:"output_tokens"`
	CacheRead  float64 `json:"cache_read_input_tokens"`
	CacheWrite float64 `json:"cache_creation_input_tokens"`
}

func (u claudeTurnUse) usage() runlog.Usage {
	return runlog.Usage{Input: tokens(u.Input), Output: tokens(u.Output), CacheRead: tokens(u.CacheRead), CacheWrite: tokens(u.CacheWrite)}
}

// useOf adds up the usage of all models. Only this sum includes everything.
func useOf(models map[string]claudeModelUse) runlog.Usage {
	var total runlog.Usage
	for _, m := range models {
		total = total.Add(runlog.Usage{
			Input: tokens(m.Input), Output: tokens(m.Output), CacheRead: tokens(m.CacheRead), CacheWrite: tokens(m.CacheWrite),
		})
	}
	return total
}

// costOf adds up the program's cost estimates for all models.
func costOf(models map[string]claudeModelUse) float64 {
	total := 0.0
	for _, m := range models {
		total += clamp(m.CostUSD, 0, 1e6)
	}
	return total
}

// usage returns the usage of this run. If the results do not report it separately, the count for a resumed session may
// include its earlier runs: it does if it covers the prior usage plus the last turn. The result is zero if the prior
// usage is unknown.
func (p *claudeParser) usage(e Ended) runlog.Usage {
	all := useOf(p.last.Models)
	switch {
	case p.counted:
		return p.own
	case e.WantSession == "":
		return all
	case e.Prior == nil:
		return runlog.Usage{}
	}
	if least := e.Prior.Add(p.last.Turn.usage()); minus(least, all) == (runlog.Usage{}) {
		return minus(all, *e.Prior)
	}
	return all
}

// cost returns the program's cost estimate for this run, whose usage is own. If only the cost of the whole session is
// known, it is prorated by tokens.
func (p *claudeParser) cost(own runlog.Usage) float64 {
	if p.counted {
		return clamp(p.ownCost, 0, 1e6)
	}
	cost, all := clamp(p.last.CostUSD, 0, 1e6), useOf(p.last.Models)
	if own == all {
		return cost
	}
	return cost * float64(sum(own)) / float64(max(sum(all), 1))
}

// sum returns the number of tokens of all kinds.
func sum(u runlog.Usage) int64 { return u.Input + u.Output + u.CacheRead + u.CacheWrite }

// tokens clamps an untrusted token count.
func tokens(v float64) int64 {
	if math.IsNaN(v) {
		return 0
	}
	return int64(clamp(v, 0, 1e12))
}

// text returns the answer, or the error in its place, without the program's internal diagnostics.
func (r *claudeResult) text() string {
	errs := slices.DeleteFunc(slices.Clone(r.Errors), func(e string) bool { return strings.HasPrefix(e, "[ede_diagnostic]") })
	return firstOf(r.Result, strings.Join(errs, "\n"))
}

// Exit judges by the last result, the exit status, stderr and the request together: a "success" may be a failure
// (is_error), exit status 0 may be an interrupted run, and after a requested stop no result counts.
func (p *claudeParser) Exit(e Ended) Result {
	r := Result{Session: p.session, ResetAt: p.resetAt}
	if p.last != nil {
		r.Text = p.last.text()
		r.Session = firstOf(p.last.SessionID, p.session)
		r.Turns = p.last.Turns
		r.Usage = p.usage(e)
		r.CostUSD = p.cost(r.Usage)
		r.HTTP = p.last.HTTP
		r.Denials = p.last.denials()
		if s := p.last.Structured; len(s) > 0 && string(s) != "null" {
			r.Structured = s
		}
	}
	r.judge(p.judge(e, r))
	if r.Status == StatusNoSession {
		r.Session = "" // the program created a new one
	}
	if r.Status == StatusRateLimited && r.ResetAt.IsZero() {
		r.ResetAt = resetIn(r.Text, e.Exit.EndedAt)
	}
	return r
}

func (r *claudeResult) denials() []string {
	var names []string
	for _, d := range r.Denials {
		name, _ := d["tool_name"].(string)
		if name = cutText(name, 100); name != "" && len(names) < 100 {
			names = append(names, name)
		}
	}
	return names
}

// judge returns the status, by decreasing trust: errand's own knowledge, the runner's observations, and last the
// program's report.
func (p *claudeParser) judge(e Ended, r Result) verdict {
	if s := ofCause(e); s != "" {
		return verdict{status: s}
	}
	switch {
	case p.last == nil && p.cut != "" && e.clean():
		return verdict{status: StatusAnswerCut, why: p.cut}
	case p.last == nil:
		return silent(e)
	}
	last := p.last
	if len(last.Errors) > 0 && strings.HasPrefix(last.Errors[0], noConversation) {
		return verdict{status: StatusNoSession, said: last.Errors[0]}
	}
	switch last.Subtype {
	case "success":
	case "error_max_turns":
		return verdict{status: StatusMaxTurns, said: last.text()}
	case "error_max_budget_usd":
		return verdict{status: StatusBudget, said: last.text()}
	case "error_max_structured_output_retries":
		return verdict{status: StatusNoStructuredOutput, said: last.text()}
	default:
		if strings.HasPrefix(last.Terminal, "aborted_") {
			return verdict{status: StatusInterrupted, said: last.text()}
		}
		return verdict{status: StatusCrashed, said: firstOf(last.text(), last.Subtype)}
	}
	if last.IsError {
		return p.apiFailure(last)
	}
	return p.success(e, r)
}

const noConversation = "No conversation found"

// success checks the conditions of a success besides the reported one.
func (p *claudeParser) success(e Ended, r Result) verdict {
	switch {
	case e.Exit.Code != 0 || e.Exit.Signal != "":
		return verdict{status: StatusCrashed, why: endedBadly(e), said: lastLine(e.Stderr)}
	case e.WantSession != "" && r.Session != e.WantSession:
		return verdict{status: StatusNoSession, why: otherSession}
	case p.after:
		return verdict{status: StatusCrashed, why: "the agent went on with its work after its answer, and ended without another"}
	case p.last.Turns == 0:
		return verdict{status: StatusNoOp, said: p.last.Result}
	case p.last.Terminal == "hook_stopped":
		return verdict{status: StatusHookStopped, said: p.last.Result}
	case p.last.StopReason == "refusal":
		return verdict{status: StatusRefused, why: declined, said: p.last.Result}
	case e.WantSchema && !json.Valid(r.Structured):
		return verdict{status: StatusNoStructuredOutput}
	}
	return verdict{status: StatusOK}
}

// apiFailure classifies a run that an error of the model's API ended.
func (p *claudeParser) apiFailure(r *claudeResult) verdict {
	if r.StopReason == "refusal" {
		return verdict{status: StatusRefused, why: declined, said: r.Result}
	}
	return verdict{status: p.apiStatus(r), said: r.Result}
}

func (p *claudeParser) apiStatus(r *claudeResult) Status {
	switch {
	case r.Terminal == "prompt_too_long", r.HTTP == http.StatusRequestEntityTooLarge:
		return StatusContextOverflow
	case r.HTTP == http.StatusPaymentRequired, p.lastErr == "billing_error":
		return StatusBilling
	case r.HTTP == http.StatusTooManyRequests, p.lastErr == "rate_limit":
		return StatusRateLimited
	case r.HTTP == http.StatusUnauthorized, r.HTTP == http.StatusForbidden, p.lastErr == "authentication_failed":
		return StatusAuth
	case r.HTTP >= http.StatusInternalServerError:
		return StatusOverloaded
	case r.HTTP >= http.StatusBadRequest:
		return StatusInvalid
	case strings.Contains(r.Result, "Unable to connect"), p.lastErr == "server_error":
		return StatusNetwork
	}
	return StatusCrashed
}

// silent judges a run without a result.
func silent(e Ended) verdict {
	said := lastLine(e.Stderr)
	switch {
	case strings.Contains(e.Stderr, noConversation):
		return verdict{status: StatusNoSession, said: said}
	case e.Exit.Signal != "" || e.Exit.Code > 128:
		return verdict{status: StatusCrashed, said: said}
	case e.Exit.Code == 126 || e.Exit.Code == 127:
		return verdict{status: StatusStartFailed, said: said}
	case e.Exit.Code != 0 && said != "":
		return verdict{status: StatusInvalid, said: said}
	}
	return verdict{status: StatusCrashed, said: said}
}

// lastLine returns the last non-empty line.
func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

var resetTime = regexp.MustCompile(`resets (\d{1,2})(?::(\d{2}))?(am|pm) \(UTC\)`)

// resetIn parses "resets 10:26pm (UTC)" as the next such time after now; zero if there is none.
func resetIn(text string, now time.Time) time.Time {
	m := resetTime.FindStringSubmatch(text)
	if m == nil || now.IsZero() {
		return time.Time{}
	}
	clock, err := time.Parse("3:04pm", m[1]+":"+firstOf(m[2], "00")+m[3])
	if err != nil {
		return time.Time{}
	}
	now = now.UTC()
	at := time.Date(now.Year(), now.Month(), now.Day(), clock.Hour(), clock.Minute(), 0, 0, time.UTC)
	if !at.After(now) {
		at = at.AddDate(0, 0, 1)
	}
	return at
}
