package client

import (
	"context"
	"errors"
	"net/http"

	"github.com/cenkalti/backoff/v5"
)

// readTries is the number of attempts of an operation that can be repeated.
const readTries = 3

// busyError is a response after which a retry may succeed.
type busyError struct{ resp *http.Response }

func (e *busyError) Error() string { return "GitHub answered " + e.resp.Status }

func (t *transport) newBackOff() backoff.BackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = t.backoff, 8*t.backoff
	return b
}

// classifyForRetry returns the error for backoff.Retry: nil for success, a permanent error, or any other error for a
// retry.
func (t *transport) classifyForRetry(ctx context.Context, once bool, resp *http.Response, err error) error {
	var limit *LimitError
	switch {
	case err == nil && !once && resp.StatusCode >= 502 && resp.StatusCode <= 504:
		return &busyError{resp}
	case err == nil:
		return nil
	case once || ctx.Err() != nil || errors.As(err, &limit) || errors.Is(err, ErrRenamed):
		return backoff.Permanent(err)
	}
	return err
}
