package gemini

import (
	"cmp"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/agent/cli"
)

// Exit codes of Gemini CLI that are not failures of the model's API.
const (
	exitAuth      = 41
	exitInput     = 42
	exitTurns     = 53
	exitUntrusted = 55
)

// noSession matches the message on stderr that the session, or any session, does not exist.
var noSession = regexp.MustCompile(`Invalid session identifier|No previous sessions found`)

// Exit judges by the result, the exit status and stderr together: a stopped run exits with 0 and without a result; a
// failure of the model's API exits with the HTTP status modulo 256.
func (p *parser) Exit(e agent.Ended) agent.Result {
	p.tell()
	r := agent.Result{Session: p.session, Text: p.answer, Turns: p.turns, Denials: p.denials}
	if p.last != nil {
		r.Usage = p.last.usage()
	}
	p.judge(e, &r).Apply(&r)
	if r.Status == agent.StatusNoSession {
		r.Session = ""
	}
	if r.Status == agent.StatusRateLimited && !e.Exit.EndedAt.IsZero() {
		r.ResetAt = retryAfter(e.Stderr, e.Exit.EndedAt)
	}
	return r
}

// judge returns the status, by decreasing trust: errand's own knowledge, the runner's observations, and last the
// program's report.
func (p *parser) judge(e agent.Ended, r *agent.Result) cli.Verdict {
	if s := cli.StatusOfCause(e); s != "" {
		return cli.Verdict{Status: s}
	}
	said := p.failure(e)
	switch {
	case p.last != nil && p.last.Error.Type == "FatalTurnLimitedError", e.Exit.Code == exitTurns:
		return cli.Verdict{Status: agent.StatusMaxTurns, Said: said}
	case e.Exit.Signal != "":
		return cli.Verdict{Status: agent.StatusCrashed, Said: said}
	case e.Exit.Code != 0:
		return p.failed(e, r, said)
	case p.last == nil && p.cut != "":
		return cli.Verdict{Status: agent.StatusAnswerCut, Reason: p.cut}
	case p.last == nil:
		return cli.Verdict{Status: agent.StatusCrashed, Said: said}
	case p.last.Status != "success":
		return p.ofAPI(e, r, said)
	case e.WantSession != "" && p.session != e.WantSession:
		return cli.Verdict{Status: agent.StatusNoSession, Reason: cli.ReasonOtherSession}
	case p.looped:
		return cli.Verdict{Status: agent.StatusLooped}
	case p.turns == 0:
		return cli.Verdict{Status: agent.StatusNoOp}
	case p.cut != "":
		return cli.Verdict{Status: agent.StatusAnswerCut, Reason: p.cut}
	case e.WantSchema:
		return cli.Verdict{Status: agent.StatusNoStructuredOutput}
	case p.answer == "":
		return cli.Verdict{Status: agent.StatusRefused, Reason: cli.ReasonEmptyAnswer}
	}
	return cli.Verdict{Status: agent.StatusOK}
}

// failure returns the program's description of its failure.
func (p *parser) failure(e agent.Ended) string {
	if p.last != nil && p.last.Error.Message != "" {
		return p.last.Error.Message
	}
	if p.problem != "" {
		return p.problem
	}
	for _, line := range strings.Split(e.Stderr, "\n") {
		line = strings.TrimSpace(line)
		if _, message, ok := strings.Cut(line, "Error"); ok && !strings.HasPrefix(line, "at ") && strings.Trim(message, ": ") != "" {
			return line
		}
	}
	return cli.LastLine(e.Stderr)
}

// failed judges a run by its exit code.
func (p *parser) failed(e agent.Ended, r *agent.Result, said string) cli.Verdict {
	switch e.Exit.Code {
	case exitInput:
		if noSession.MatchString(e.Stderr) {
			return cli.Verdict{Status: agent.StatusNoSession, Said: said}
		}
		return cli.Verdict{Status: agent.StatusInvalid, Said: said}
	case exitUntrusted:
		return cli.Verdict{Status: agent.StatusInvalid, Said: said}
	case exitAuth:
		return cli.Verdict{Status: agent.StatusAuth, Said: said}
	case 126, 127:
		return cli.Verdict{Status: agent.StatusStartFailed, Said: said}
	}
	return p.ofAPI(e, r, said)
}

// ofAPI judges a run that an error of the model's API ended, by the program's last message, and only then by earlier
// output.
func (p *parser) ofAPI(e agent.Ended, r *agent.Result, said string) cli.Verdict {
	for _, sign := range signs() {
		if strings.Contains(said, sign.part) {
			return cli.Verdict{Status: sign.status, Reason: sign.why, Said: said}
		}
	}
	switch {
	case strings.Contains(said, noFinishReason) && p.blocked():
		return cli.Verdict{Status: agent.StatusRefused, Reason: "the model's provider gave no answer to the prompt, as if it had blocked it", Said: said}
	case strings.Contains(said, noFinishReason), unreachable.MatchString(said):
		return cli.Verdict{Status: agent.StatusNetwork, Said: said}
	}
	if r.HTTP = cmp.Or(statusIn(said), statusIn(e.Stderr), statusOfExit(e.Exit.Code)); r.HTTP == 0 && unreachable.MatchString(e.Stderr) {
		return cli.Verdict{Status: agent.StatusNetwork, Said: said}
	}
	return cli.Verdict{Status: classify(r.HTTP, said), Said: said}
}

// noFinishReason is printed for an answer that was truncated between two chunks, and for a blocked prompt.
const noFinishReason = "stream ended without a finish reason"

// blocked reports whether a prompt was probably blocked: then the input was counted but there was no output.
func (p *parser) blocked() bool {
	if p.last == nil {
		return false
	}
	u := p.last.usage()
	return p.turns == 0 && u.Input+u.CacheRead > 0 && u.Output == 0
}

// sign maps a part of the program's error message to a status. why, if set, is for people.
type sign struct {
	part   string
	status agent.Status
	why    string
}

// signs returns the signs in the order of matching. The filters for prohibited words and personal data look like
// an empty answer here.
func signs() []sign {
	return []sign{
		{"response was blocked", agent.StatusRefused, "the model's provider blocked the answer"},
		{"returned an empty response", agent.StatusRefused, cli.ReasonEmptyAnswer},
		{"truncated because it exceeded the token limit", agent.StatusContextOverflow, "the model's answer was cut off because it was too long for the model"},
	}
}

var (
	// httpStatus matches the HTTP status in the API's error, or in the program's message about it.
	httpStatus  = regexp.MustCompile(`(?:"code":\s*|\bcode: |\bstatus:\s*|got status:?\s*|\[API Error: )([45]\d\d)\b`)
	unreachable = regexp.MustCompile(`(?i)\bE(?:CONN(?:REFUSED|RESET|ABORTED)|NOTFOUND|TIMEDOUT|AI_AGAIN|PIPE|HOSTUNREACH|NETUNREACH|NETDOWN)\b|\bUND_ERR_\w+|` +
		`fetch failed|socket hang up|premature close|other side closed|(?:API Error|TypeError): terminated|Incomplete JSON segment`)
	retryDelay = regexp.MustCompile(`"retryDelay":\s*"(\d{1,7})(?:\.\d+)?s"`)
)

// statusIn returns the last HTTP status in a text, or 0.
func statusIn(text string) int {
	all := httpStatus.FindAllStringSubmatch(text, -1)
	if len(all) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(all[len(all)-1][1]) // three digits
	return n
}

// statusOfExit returns the HTTP status that an exit code stands for, or 0.
func statusOfExit(code int) int {
	for _, status := range []int{400, 401, 402, 403, 404, 413, 429, 500, 502, 503, 504, 529} {
		if code == status%256 {
			return status
		}
	}
	return 0
}

// classify classifies a failure of the model's API.
func classify(status int, said string) agent.Status {
	lower := strings.ToLower(said)
	switch {
	case status == http.StatusRequestEntityTooLarge, strings.Contains(lower, "too long"),
		strings.Contains(lower, "exceeds the maximum number of tokens"), strings.Contains(lower, "input token count"):
		return agent.StatusContextOverflow
	case status == http.StatusPaymentRequired, strings.Contains(lower, "billing"):
		return agent.StatusBilling
	case status == http.StatusTooManyRequests:
		return agent.StatusRateLimited
	case status == http.StatusUnauthorized, status == http.StatusForbidden, strings.Contains(lower, "api key not valid"):
		return agent.StatusAuth
	case status >= http.StatusInternalServerError:
		return agent.StatusOverloaded
	case status >= http.StatusBadRequest:
		return agent.StatusInvalid
	}
	return agent.StatusCrashed
}

// retryAfter returns the time of the next permitted call by the newest retry delay on stderr, or zero if there is none.
func retryAfter(stderr string, now time.Time) time.Time {
	all := retryDelay.FindAllStringSubmatch(stderr, -1)
	if len(all) == 0 {
		return time.Time{}
	}
	seconds, _ := strconv.Atoi(all[len(all)-1][1])
	return now.Add(time.Duration(seconds) * time.Second)
}
