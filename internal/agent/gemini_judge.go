package agent

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Exit codes of Gemini CLI that are not failures of the model's API.
const (
	geminiAuth      = 41
	geminiInput     = 42
	geminiTurns     = 53
	geminiUntrusted = 55
)

// geminiNoSession matches the message on stderr that the session, or any session, does not exist.
var geminiNoSession = regexp.MustCompile(`Invalid session identifier|No previous sessions found`)

// Exit judges by the result, the exit status and stderr together: a stopped run exits with 0 and without a result; a
// failure of the model's API exits with the HTTP status modulo 256.
func (p *geminiParser) Exit(e Ended) Result {
	p.tell()
	r := Result{Session: p.session, Text: p.answer, Turns: p.turns, Denials: p.denials}
	if p.last != nil {
		r.Usage = p.last.usage()
	}
	r.judge(p.judge(e, &r))
	if r.Status == StatusNoSession {
		r.Session = ""
	}
	if r.Status == StatusRateLimited && !e.Exit.EndedAt.IsZero() {
		r.ResetAt = retryIn(e.Stderr, e.Exit.EndedAt)
	}
	return r
}

// judge returns the status, by decreasing trust: errand's own knowledge, the runner's observations, and last the
// program's report.
func (p *geminiParser) judge(e Ended, r *Result) verdict {
	if s := ofCause(e); s != "" {
		return verdict{status: s}
	}
	said := p.failure(e)
	switch {
	case p.last != nil && p.last.Error.Type == "FatalTurnLimitedError", e.Exit.Code == geminiTurns:
		return verdict{status: StatusMaxTurns, said: said}
	case e.Exit.Signal != "":
		return verdict{status: StatusCrashed, said: said}
	case e.Exit.Code != 0:
		return p.failed(e, r, said)
	case p.last == nil && p.cut != "":
		return verdict{status: StatusAnswerCut, why: p.cut}
	case p.last == nil:
		return verdict{status: StatusCrashed, said: said}
	case p.last.Status != "success":
		return p.ofAPI(e, r, said)
	case e.WantSession != "" && p.session != e.WantSession:
		return verdict{status: StatusNoSession, why: otherSession}
	case p.looped:
		return verdict{status: StatusLooped}
	case p.turns == 0:
		return verdict{status: StatusNoOp}
	case p.cut != "":
		return verdict{status: StatusAnswerCut, why: p.cut}
	case e.WantSchema:
		return verdict{status: StatusNoStructuredOutput}
	case p.answer == "":
		return verdict{status: StatusRefused, why: emptyAnswer}
	}
	return verdict{status: StatusOK}
}

// failure returns the program's description of its failure.
func (p *geminiParser) failure(e Ended) string {
	if p.last != nil && p.last.Error.Message != "" {
		return p.last.Error.Message
	}
	if p.problem != "" {
		return p.problem
	}
	for _, line := range strings.Split(e.Stderr, "\n") {
		if _, message, ok := strings.Cut(line, "Error"); ok && !strings.HasPrefix(strings.TrimSpace(line), "at ") && strings.Trim(message, ": ") != "" {
			return strings.TrimSpace(line)
		}
	}
	return lastLine(e.Stderr)
}

// failed judges a run by its exit code.
func (p *geminiParser) failed(e Ended, r *Result, said string) verdict {
	switch e.Exit.Code {
	case geminiInput:
		if geminiNoSession.MatchString(e.Stderr) {
			return verdict{status: StatusNoSession, said: said}
		}
		return verdict{status: StatusInvalid, said: said}
	case geminiUntrusted:
		return verdict{status: StatusInvalid, said: said}
	case geminiAuth:
		return verdict{status: StatusAuth, said: said}
	case 126, 127:
		return verdict{status: StatusStartFailed, said: said}
	}
	return p.ofAPI(e, r, said)
}

// ofAPI judges a run that an error of the model's API ended, by the program's last message, and only then by earlier
// output.
func (p *geminiParser) ofAPI(e Ended, r *Result, said string) verdict {
	for _, sign := range geminiSigns() {
		if strings.Contains(said, sign.part) {
			return verdict{status: sign.status, why: sign.why, said: said}
		}
	}
	switch {
	case strings.Contains(said, geminiNoFinish) && p.blocked():
		return verdict{status: StatusRefused, why: "the model's provider gave no answer to the prompt, as if it had blocked it", said: said}
	case strings.Contains(said, geminiNoFinish), unreachable.MatchString(said):
		return verdict{status: StatusNetwork, said: said}
	}
	if r.HTTP = firstOf(statusIn(said), statusIn(e.Stderr), statusOfCode(e.Exit.Code)); r.HTTP == 0 && unreachable.MatchString(e.Stderr) {
		return verdict{status: StatusNetwork, said: said}
	}
	return verdict{status: ofHTTP(r.HTTP, said), said: said}
}

// geminiNoFinish is printed for an answer that was truncated between two chunks, and for a blocked prompt.
const geminiNoFinish = "stream ended without a finish reason"

// blocked reports whether a prompt was probably blocked: then the input was counted but there was no output.
func (p *geminiParser) blocked() bool {
	if p.last == nil {
		return false
	}
	u := p.last.usage()
	return p.turns == 0 && u.Input+u.CacheRead > 0 && u.Output == 0
}

// geminiSign maps a part of the program's error message to a status. why, if set, is for people.
type geminiSign struct {
	part   string
	status Status
	why    string
}

// geminiSigns returns the signs in the order of matching. The filters for prohibited words and personal data look like
// an empty answer here.
func geminiSigns() []geminiSign {
	return []geminiSign{
		{"response was blocked", StatusRefused, "the model's provider blocked the answer"},
		{"returned an empty response", StatusRefused, emptyAnswer},
		{"truncated because it exceeded the token limit", StatusContextOverflow, "the model's answer was cut off because it was too long for the model"},
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

// statusOfCode returns the HTTP status that an exit code stands for, or 0.
func statusOfCode(code int) int {
	for _, status := range []int{400, 401, 402, 403, 404, 413, 429, 500, 502, 503, 504, 529} {
		if code == status%256 {
			return status
		}
	}
	return 0
}

// ofHTTP classifies a failure of the model's API.
func ofHTTP(status int, said string) Status {
	lower := strings.ToLower(said)
	switch {
	case status == http.StatusRequestEntityTooLarge, strings.Contains(lower, "too long"),
		strings.Contains(lower, "exceeds the maximum number of tokens"), strings.Contains(lower, "input token count"):
		return StatusContextOverflow
	case status == http.StatusPaymentRequired, strings.Contains(lower, "billing"):
		return StatusBilling
	case status == http.StatusTooManyRequests:
		return StatusRateLimited
	case status == http.StatusUnauthorized, status == http.StatusForbidden, strings.Contains(lower, "api key not valid"):
		return StatusAuth
	case status >= http.StatusInternalServerError:
		return StatusOverloaded
	case status >= http.StatusBadRequest:
		return StatusInvalid
	}
	return StatusCrashed
}

// retryIn returns the time of the next permitted call by the newest retry delay on stderr, or zero if there is none.
func retryIn(stderr string, now time.Time) time.Time {
	all := retryDelay.FindAllStringSubmatch(stderr, -1)
	if len(all) == 0 {
		return time.Time{}
	}
	seconds, _ := strconv.Atoi(all[len(all)-1][1])
	return now.Add(time.Duration(seconds) * time.Second)
}
