package agent

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/runlog"
)

// Exit judges by the terminal event, the exit status, stderr and the request. Exit status 0 is a success only after
// turn.completed, in the requested session. Usage is that of the thread less Ended.Prior; it is zero for a resumed
// session whose prior usage is unknown.
func (p *codexParser) Exit(e Ended) Result {
	r := Result{Session: p.session, Turns: p.turns, Text: p.text, Denials: p.denials}
	switch {
	case e.Prior != nil:
		r.Usage = minus(p.usage, *e.Prior)
	case e.WantSession == "":
		r.Usage = p.usage
	}
	if p.failure != nil {
		r.Text = *p.failure
		r.HTTP = codexHTTP(*p.failure)
	}
	r.judge(p.judge(e))
	switch r.Status {
	case StatusNoSession:
		r.Session = "" // the reported id is that of a new session
	case StatusRateLimited:
		r.ResetAt = codexReset(r.Text, e.Exit.EndedAt)
	case StatusOK:
		if e.WantSchema {
			r.Structured = json.RawMessage(p.text)
		}
	}
	return r
}

// minus returns a - b, with negative counts replaced by 0.
func minus(a, b runlog.Usage) runlog.Usage {
	return runlog.Usage{
		Input: max(a.Input-b.Input, 0), Output: max(a.Output-b.Output, 0),
		CacheRead: max(a.CacheRead-b.CacheRead, 0), CacheWrite: max(a.CacheWrite-b.CacheWrite, 0),
	}
}

// judge returns the status, by decreasing trust: errand's own knowledge, the runner's observations, and last the
// program's report.
func (p *codexParser) judge(e Ended) verdict {
	if s := ofCause(e); s != "" {
		return verdict{status: s}
	}
	switch {
	case p.session == "" && strings.Contains(e.Stderr, "no rollout found"):
		return verdict{status: StatusNoSession, said: lastLine(e.Stderr)}
	case p.session != "" && e.WantSession != "" && p.session != e.WantSession:
		return verdict{status: StatusNoSession, why: otherSession}
	case p.failure != nil:
		v := verdict{status: codexFailure(*p.failure), said: codexWords(*p.failure)}
		if v.status == StatusRefused {
			v.why = declined
		}
		return v
	case p.done:
		return p.success(e)
	case p.cut != "" && e.clean():
		return verdict{status: StatusAnswerCut, why: p.cut}
	case p.session == "":
		return silent(e)
	}
	return verdict{status: StatusCrashed, said: firstOf(p.complaint, lastLine(e.Stderr))}
}

// success checks the conditions of a success besides the reported one.
func (p *codexParser) success(e Ended) verdict {
	switch {
	case e.Exit.Code != 0 || e.Exit.Signal != "":
		return verdict{status: StatusCrashed, why: endedBadly(e), said: lastLine(e.Stderr)}
	case p.cut != "":
		return verdict{status: StatusAnswerCut, why: p.cut}
	case p.turns == 0 && p.usage != (runlog.Usage{}):
		return verdict{status: StatusRefused, why: "the model's answer was empty, which means that it declined"}
	case p.turns == 0:
		return verdict{status: StatusNoOp}
	case e.WantSchema && !json.Valid([]byte(p.text)):
		return verdict{status: StatusNoStructuredOutput}
	case p.text == "":
		return verdict{status: StatusRefused, why: emptyAnswer}
	}
	return verdict{status: StatusOK}
}

// codexSign maps a part of an error message to a status. Codex has no error codes.
type codexSign struct {
	part   string
	status Status
}

// codexSigns returns the signs, in lower case and in the order of matching.
func codexSigns() []codexSign {
	return []codexSign{
		{"errand: the run's turns are used up", StatusMaxTurns},
		{"errand: the task's cap", StatusBudget},
		{"errand: the cap of", StatusBudget}, // the cap of one run, or of all tasks
		{"ran out of room", StatusContextOverflow},
		{"context window", StatusContextOverflow},
		{"context_length_exceeded", StatusContextOverflow},
		{"check your plan and billing", StatusBilling},
		{"insufficient_quota", StatusBilling},
		{"hit your usage limit", StatusRateLimited},
		{"usage limit", StatusRateLimited},
		{"at capacity", StatusOverloaded},
		{"high demand", StatusOverloaded},
		{"overloaded", StatusOverloaded},
		{"content_filter", StatusRefused},
		{"invalid_prompt", StatusRefused},
		{"does not exist", StatusInvalid}, // the model
	}
}

// codexFailure classifies an error message.
func codexFailure(text string) Status {
	low := strings.ToLower(text)
	for _, s := range codexSigns() {
		if strings.Contains(low, s.part) {
			return s.status
		}
	}
	switch code := codexHTTP(text); {
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		return StatusAuth
	case code == http.StatusPaymentRequired:
		return StatusBilling
	case code == http.StatusTooManyRequests:
		return StatusRateLimited
	case code == http.StatusRequestEntityTooLarge:
		return StatusContextOverflow
	case code >= http.StatusInternalServerError:
		return StatusOverloaded
	case code >= http.StatusBadRequest:
		return StatusInvalid
	}
	for _, part := range []string{"stream disconnected", "error sending request", "connection failed", "network", "timeout", "timed out"} {
		if strings.Contains(low, part) {
			return StatusNetwork
		}
	}
	if json.Valid([]byte(text)) || strings.Contains(low, "invalid_request_error") {
		return StatusInvalid // the body of a 400 response is passed on unchanged
	}
	return StatusCrashed
}

var codexStatus = regexp.MustCompile(`(?:last status:|unexpected status) ([1-5]\d\d)`)

// codexHTTP returns the HTTP status in an error message, or 0.
func codexHTTP(text string) int {
	m := codexStatus.FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1]) // three digits
	return n
}

var gatewayWords = regexp.MustCompile(`(?s)errand: (.+?)(?:, url: |$)`)

// codexWords returns the message of a failure without the surrounding JSON body of the API or the URL.
func codexWords(text string) string {
	if m := gatewayWords.FindStringSubmatch(text); m != nil {
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

var codexAgain = regexp.MustCompile(`try again at (?:([A-Z][a-z]{2}) (\d{1,2})(?:st|nd|rd|th), (\d{4}) )?(\d{1,2}:\d{2} [AP]M)`)

// codexReset parses "try again at 10:26 PM" as the next such time after now, and a time with a date as written. Codex
// writes local time, which is assumed to be UTC. The result is zero if there is none.
func codexReset(text string, now time.Time) time.Time {
	m := codexAgain.FindStringSubmatch(text)
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
	return resetIn("resets "+strings.ToLower(strings.Replace(m[4], " ", "", 1))+" (UTC)", now)
}
