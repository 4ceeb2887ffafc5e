package codex

import (
	"cmp"
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/agent/cli"
	"github.com/errand-bot/errand/internal/runlog"
)

// Exit judges by the terminal event, the exit status, stderr and the request. Exit status 0 is a success only after
// turn.completed, in the requested session. Usage is that of the thread less Ended.Prior; it is zero for a resumed
// session whose prior usage is unknown.
func (p *parser) Exit(e agent.Ended) agent.Result {
	r := agent.Result{Session: p.session, Turns: p.turns, Text: p.text, Denials: p.denials}
	switch {
	case e.Prior != nil:
		r.Usage = cli.SubtractUsage(p.usage, *e.Prior)
	case e.WantSession == "":
		r.Usage = p.usage
	}
	if p.failure != nil {
		r.Text = *p.failure
		r.HTTP = httpStatusIn(*p.failure)
	}
	p.judge(e).Apply(&r)
	switch r.Status {
	case agent.StatusNoSession:
		r.Session = "" // the reported id is that of a new session
	case agent.StatusRateLimited:
		r.ResetAt = resetAfter(r.Text, e.Exit.EndedAt)
	case agent.StatusOK:
		if e.WantSchema {
			r.Structured = json.RawMessage(p.text)
		}
	}
	return r
}

// judge returns the status, by decreasing trust: errand's own knowledge, the runner's observations, and last the
// program's report.
func (p *parser) judge(e agent.Ended) cli.Verdict {
	if s := cli.StatusOfCause(e); s != "" {
		return cli.Verdict{Status: s}
	}
	switch {
	case p.session == "" && strings.Contains(e.Stderr, "no rollout found"):
		return cli.Verdict{Status: agent.StatusNoSession, Said: cli.LastLine(e.Stderr)}
	case p.session != "" && e.WantSession != "" && p.session != e.WantSession:
		return cli.Verdict{Status: agent.StatusNoSession, Reason: cli.ReasonOtherSession}
	case p.failure != nil:
		v := cli.Verdict{Status: classify(*p.failure), Said: failureText(*p.failure)}
		if v.Status == agent.StatusRefused {
			v.Reason = cli.ReasonDeclined
		}
		return v
	case p.done:
		return p.success(e)
	case p.cut != "" && e.Clean():
		return cli.Verdict{Status: agent.StatusAnswerCut, Reason: p.cut}
	case p.session == "":
		return cli.JudgeWithoutResult(e)
	}
	return cli.Verdict{Status: agent.StatusCrashed, Said: cmp.Or(p.complaint, cli.LastLine(e.Stderr))}
}

// success checks the conditions of a success besides the reported one.
func (p *parser) success(e agent.Ended) cli.Verdict {
	switch {
	case e.Exit.Code != 0 || e.Exit.Signal != "":
		return cli.Verdict{Status: agent.StatusCrashed, Reason: cli.ReasonFailedExit(e), Said: cli.LastLine(e.Stderr)}
	case p.cut != "":
		return cli.Verdict{Status: agent.StatusAnswerCut, Reason: p.cut}
	case p.turns == 0 && p.usage != (runlog.Usage{}):
		return cli.Verdict{Status: agent.StatusRefused, Reason: "the model's answer was empty, which means that it declined"}
	case p.turns == 0:
		return cli.Verdict{Status: agent.StatusNoOp}
	case e.WantSchema && !json.Valid([]byte(p.text)):
		return cli.Verdict{Status: agent.StatusNoStructuredOutput}
	case p.text == "":
		return cli.Verdict{Status: agent.StatusRefused, Reason: cli.ReasonEmptyAnswer}
	}
	return cli.Verdict{Status: agent.StatusOK}
}

// sign maps a part of an error message to a status. Codex has no error codes.
type sign struct {
	part   string
	status agent.Status
}

// signs returns the signs, in lower case and in the order of matching.
func signs() []sign {
	return []sign{
		{"errand: the run's turns are used up", agent.StatusMaxTurns},
		{"errand: the task's cap", agent.StatusBudget},
		{"errand: the cap of", agent.StatusBudget}, // the cap of one run, or of all tasks
		{"ran out of room", agent.StatusContextOverflow},
		{"context window", agent.StatusContextOverflow},
		{"context_length_exceeded", agent.StatusContextOverflow},
		{"check your plan and billing", agent.StatusBilling},
		{"insufficient_quota", agent.StatusBilling},
		{"hit your usage limit", agent.StatusRateLimited},
		{"usage limit", agent.StatusRateLimited},
		{"at capacity", agent.StatusOverloaded},
		{"high demand", agent.StatusOverloaded},
		{"overloaded", agent.StatusOverloaded},
		{"content_filter", agent.StatusRefused},
		{"invalid_prompt", agent.StatusRefused},
		{"does not exist", agent.StatusInvalid}, // the model
	}
}

// classify classifies an error message.
func classify(text string) agent.Status {
	low := strings.ToLower(text)
	for _, s := range signs() {
		if strings.Contains(low, s.part) {
			return s.status
		}
	}
	switch code := httpStatusIn(text); {
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		return agent.StatusAuth
	case code == http.StatusPaymentRequired:
		return agent.StatusBilling
	case code == http.StatusTooManyRequests:
		return agent.StatusRateLimited
	case code == http.StatusRequestEntityTooLarge:
		return agent.StatusContextOverflow
	case code >= http.StatusInternalServerError:
		return agent.StatusOverloaded
	case code >= http.StatusBadRequest:
		return agent.StatusInvalid
	}
	for _, part := range []string{"stream disconnected", "error sending request", "connection failed", "network", "timeout", "timed out"} {
		if strings.Contains(low, part) {
			return agent.StatusNetwork
		}
	}
	if json.Valid([]byte(text)) || strings.Contains(low, "invalid_request_error") {
		return agent.StatusInvalid // the body of a 400 response is passed on unchanged
	}
	return agent.StatusCrashed
}

var httpStatus = regexp.MustCompile(`(?:last status:|unexpected status) ([1-5]\d\d)`)

// httpStatusIn returns the HTTP status in an error message, or 0.
func httpStatusIn(text string) int {
	m := httpStatus.FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1]) // three digits
	return n
}

var gatewayText = regexp.MustCompile(`(?s)errand: (.+?)(?:, url: |$)`)

// failureText returns the message of a failure without the surrounding JSON body of the API or the URL.
func failureText(text string) string {
	if m := gatewayText.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	var body struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal([]byte(text), &body) == nil && body.Error.Message != "" {
		return body.Error.Message
	}
	text, _, _ = strings.Cut(text, ", url: ")
	return text
}

var retryTime = regexp.MustCompile(`try again at (?:([A-Z][a-z]{2}) (\d{1,2})(?:st|nd|rd|th), (\d{4}) )?(\d{1,2}:\d{2} [AP]M)`)

// resetAfter parses "try again at 10:26 PM" as the next such time after now, and a time with a date as written. Codex
// writes local time, which is assumed to be UTC. The result is zero if there is none.
func resetAfter(text string, now time.Time) time.Time {
	m := retryTime.FindStringSubmatch(text)
	if m == nil || now.IsZero() {
		return time.Time{}
	}
	if m[1] != "" {
		at, err := time.Parse("Jan 2 2006 3:04 PM", m[1]+" "+m[2]+" "+m[3]+" "+m[4])
		if err != nil {
			return time.Time{}
		}
		return at
	}
	return cli.ResetTime("resets "+strings.ToLower(strings.Replace(m[4], " ", "", 1))+" (UTC)", now)
}
