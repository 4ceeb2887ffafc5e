package agentloop

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/cenkalti/backoff/v5"

	"github.com/errand-bot/errand/internal/agentloop/wire"
	"github.com/errand-bot/errand/internal/clock"
)

// Limits of a model call. The tether may hold a request for ten minutes while errand is not attached.
const (
	headerTimeout = 15 * time.Minute
	callTimeout   = time.Hour
	longestWait   = 60 * time.Second // the orchestrator waits for limits that last longer
)

// newService returns the API's client. Its version stays at v1.26, because later ones triple the code to compile and
// add a dozen modules for unused parts of the API.
//
// It reads nothing from the environment or from files in the home directory, which the repository's own code could have
// manipulated, and uses no proxy, because the model is behind a loopback port.
func newService(set wire.Settings) anthropic.MessageService {
	transport := &http.Transport{
		DialContext:           (&net.Dialer{Timeout: 30 * time.Second}).DialContext,
		ResponseHeaderTimeout: headerTimeout,
	}
	return anthropic.NewMessageService(
		option.WithBaseURL(strings.TrimSuffix(set.BaseURL, "/")+"/"), option.WithAuthToken(set.Token),
		option.WithHTTPClient(&http.Client{Transport: transport}),
		option.WithMaxRetries(0), // callModel retries, to report retries and to include truncated streams
	)
}

// failure is a failed model call.
type failure struct {
	status    int // HTTP status, 0 if there was no answer
	kind      string
	message   string
	after     time.Duration // delay requested by the server, 0 if none
	reset     time.Time
	retryable bool
}

// callModel sends the conversation until it gets an answer. If the API refuses a request with pictures, it removes them:
// a picture that the model cannot read must not end the conversation. Its error is an *end, the context's error, or a
// failure to store the session.
func (l *loop) callModel(ctx context.Context) (*anthropic.Message, error) {
	waits := backoff.NewExponentialBackOff()
	waits.InitialInterval, waits.MaxInterval, waits.Multiplier = l.opt.RetryWait, 16*time.Second, 2
	for attempt := 0; ; attempt++ {
		answer, err := l.callOnce(ctx)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err == nil {
			return answer, nil
		}
		f := classify(err, l.opt.Now())
		if f.mayConcernPictures() {
			removed, err := l.sess.removePictures(f.message)
			if err != nil {
				return nil, err
			}
			if removed {
				l.out.print(wire.Line{Type: wire.TypeNotice, Text: "The model's API refused a request with pictures; they were removed: " + f.message})
				continue
			}
		}
		if !f.retryable || attempt >= l.opt.Retries || f.after > longestWait {
			return nil, f.toEnd()
		}
		wait := max(waits.NextBackOff(), f.after)
		l.out.print(wire.Line{Type: wire.TypeRetry, Text: f.shortName(), HTTP: f.status, DelayMS: wait.Milliseconds()})
		if err := clock.Sleep(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// errTruncated means that a stream ended before the message was complete.
var errTruncated = errors.New("the stream ended early")

// callOnce sends one request and reads its complete answer.
func (l *loop) callOnce(ctx context.Context) (*anthropic.Message, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	stream := l.api.NewStreaming(ctx, l.request())
	defer func() { _ = stream.Close() }()
	answer, whole := &anthropic.Message{}, false
	for stream.Next() {
		ev := stream.Current()
		if err := answer.Accumulate(ev); err != nil {
			return nil, fmt.Errorf("read the answer: %w", err)
		}
		whole = whole || ev.Type == "message_stop"
	}
	switch {
	case stream.Err() != nil:
		return nil, stream.Err()
	case !whole:
		return nil, errTruncated
	}
	return answer, nil
}

// streamError is the prefix of the client's error if the API reports an error within a stream.
const streamError = "received error while streaming: "

// classify converts the error of a failed call.
func classify(err error, now time.Time) *failure {
	f := &failure{}
	var api *anthropic.Error
	switch said, inStream := strings.CutPrefix(err.Error(), streamError); {
	case errors.As(err, &api):
		f.status = api.StatusCode
		f.kind, f.message = parseAPIError(api.RawJSON(), f.status)
	case inStream:
		f.kind, f.message = parseAPIError(said, http.StatusInternalServerError)
		f.status = statusOfKind(f.kind)
	default:
		return &failure{message: "the model cannot be reached: " + err.Error(), retryable: true}
	}
	f.retryable = f.status == http.StatusRequestTimeout || f.status == http.StatusConflict ||
		f.status == http.StatusTooManyRequests || f.status >= http.StatusInternalServerError
	if api == nil || api.Response == nil {
		return f
	}
	h := api.Response.Header
	if s, err := strconv.ParseFloat(h.Get("Retry-After"), 64); err == nil && s > 0 && s < 1e7 {
		f.after = time.Duration(s * float64(time.Second))
		f.reset = now.Add(f.after)
	}
	if s, err := strconv.ParseInt(h.Get("Anthropic-Ratelimit-Unified-Reset"), 10, 64); err == nil && h.Get("Anthropic-Ratelimit-Unified-Status") == "rejected" {
		f.reset, f.after = time.Unix(s, 0), time.Unix(s, 0).Sub(now)
	}
	if h.Get("X-Should-Retry") == "false" {
		f.retryable = false
	}
	return f
}

// statusOfKind returns the HTTP status for a kind of error that came without one.
func statusOfKind(kind string) int {
	switch kind {
	case "overloaded_error":
		return 529
	case "rate_limit_error":
		return http.StatusTooManyRequests
	case "invalid_request_error":
		return http.StatusBadRequest
	case "authentication_error":
		return http.StatusUnauthorized
	case "permission_error":
		return http.StatusForbidden
	case "billing_error":
		return http.StatusPaymentRequired
	case "request_too_large":
		return http.StatusRequestEntityTooLarge
	}
	return http.StatusInternalServerError
}

// shortName returns the failure in a word.
func (f *failure) shortName() string {
	switch {
	case f.kind != "":
		return strings.TrimSuffix(f.kind, "_error")
	case f.status != 0:
		return "HTTP " + strconv.Itoa(f.status)
	}
	return "network"
}

// toEnd converts a failed call into the end of the run.
func (f *failure) toEnd() *end {
	e := newEnd(wire.CauseInvalid, f.message)
	e.HTTP = f.status
	if !f.reset.IsZero() {
		e.ResetAt = f.reset.Unix()
	}
	long := strings.Contains(f.message, "prompt is too long") || strings.Contains(f.message, "exceed context limit")
	switch {
	case f.status == 0:
		e.Cause = wire.CauseNetwork
	case long || f.status == http.StatusRequestEntityTooLarge:
		e.Cause = wire.CauseContextOverflow
	case f.status == http.StatusPaymentRequired, f.kind == "billing_error", strings.Contains(f.message, "credit balance is too low"):
		e.Cause = wire.CauseBilling
	case f.status == http.StatusTooManyRequests:
		e.Cause = wire.CauseRateLimited
	case f.status == http.StatusUnauthorized || f.status == http.StatusForbidden:
		e.Cause = wire.CauseAuth
	case f.status >= http.StatusInternalServerError:
		e.Cause = wire.CauseOverloaded
	}
	return e
}
