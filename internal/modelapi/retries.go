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

// stopRetriesAfter is a wait that every program whose dialect has one takes for a reason to give up: Claude Code does above a
// minute, Gemini CLI above five.
const stopRetriesAfter = 301 * time.Second

// StopRetries changes the answer that told of a limit that lasts until a time, so that programs which speak the dialect give up at
// once. Left to themselves, they ask again for half a minute to minutes where the answer says the end in a form that they do
// not know, or sleep for hours where it says it in one that they obey. Errand waits for the limit itself, without a VM.
func (a API) StopRetries(answer *http.Response, until, now time.Time) {
	wait := max(until.Sub(now), stopRetriesAfter).Round(time.Second)
	seconds := strconv.FormatInt(int64(wait/time.Second), 10)
	switch a {
	case OpenAI: // Codex gives up without the header, and obeys any
		answer.Header.Del("Retry-After")
		answer.Header.Set("X-Should-Retry", "false") // for clients that are made from OpenAI's library
	case Gemini: // which looks at the body alone
		message := fmt.Sprintf("errand: the limit of its account at the model's provider is reached. Please retry in %ss", seconds)
		body, err := json.Marshal(map[string]any{"error": map[string]any{"code": http.StatusTooManyRequests, "message": message, "status": "RESOURCE_EXHAUSTED"}})
		if err != nil { // of a text and a number: cannot happen
			return
		}
		_ = answer.Body.Close()               // nothing of it is wanted
		answer.Header.Del("Content-Encoding") // some servers compress whatever was asked
		answer.Header.Set("Content-Type", "application/json")
		answer.Header.Set("Content-Length", strconv.Itoa(len(body)))
		answer.Header.Set("Retry-After", seconds)
		answer.ContentLength, answer.Body = int64(len(body)), io.NopCloser(bytes.NewReader(body))
	default:
		answer.Header.Set("Retry-After", seconds)
		answer.Header.Set("X-Should-Retry", "false")
	}
}
