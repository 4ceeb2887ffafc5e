package modelapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// stopRetriesAfter is a wait at which programs give up: Claude Code does above a minute, Gemini CLI above five.
const stopRetriesAfter = 301 * time.Second

// StopRetries changes an answer that reports a limit until some time, so that programs give up at once. Otherwise they
// retry for up to minutes, or sleep for hours, depending on the form in which the answer reports the end of the limit.
// Errand waits for the limit itself, without a VM.
func (a API) StopRetries(answer *http.Response, until, now time.Time) {
	wait := max(until.Sub(now), stopRetriesAfter).Round(time.Second)
	seconds := strconv.FormatInt(int64(wait/time.Second), 10)
	switch a {
	case OpenAI: // Codex gives up without the header, and obeys it otherwise
		answer.Header.Del("Retry-After")
		answer.Header.Set("X-Should-Retry", "false") // for clients that use OpenAI's library
	case Gemini: // Gemini CLI only reads the body
		message := fmt.Sprintf("errand: the limit of its account at the model's provider is reached. Please retry in %ss", seconds)
		failure := map[string]any{"code": http.StatusTooManyRequests, "message": message, "status": "RESOURCE_EXHAUSTED"}
		body, err := json.Marshal(map[string]any{"error": failure})
		if err != nil { // of strings and numbers: cannot happen
			return
		}
		_ = answer.Body.Close()               // replaced
		answer.Header.Del("Content-Encoding") // some servers compress without being asked
		answer.Header.Set("Content-Type", "application/json")
		answer.Header.Set("Content-Length", strconv.Itoa(len(body)))
		answer.Header.Set("Retry-After", seconds)
		answer.ContentLength, answer.Body = int64(len(body)), io.NopCloser(bytes.NewReader(body))
	default:
		answer.Header.Set("Retry-After", seconds)
		answer.Header.Set("X-Should-Retry", "false")
	}
}
