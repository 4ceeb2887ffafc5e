package egress

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// ErrCredentialRefused says that a registry answers, and refuses its credential. ErrForbidden says that it allows nobody with this credential to
// read its own address, which some registries never do.
var (
	ErrCredentialRefused = errors.New("the registry refuses the credential")
	ErrForbidden         = errors.New("the registry forbids its own address to this credential (403)")
)

// tryTimeout is the timeout of Try.
const tryTimeout = 15 * time.Second

// Try asks the registry for its own address with the credential. Some registries serve nothing there, so every answer is a success
// except 401, 403 and 5xx.
func (r Registry) Try(ctx context.Context, by http.RoundTripper) error {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	ask, err := http.NewRequestWithContext(ctx, http.MethodGet, r.URL.String()+"/", http.NoBody)
	if err != nil {
		return fmt.Errorf("ask the registry: %w", err)
	}
	ask.Header.Set(r.Header, r.Value)
	answer, err := by.RoundTrip(ask)
	if err != nil {
		return fmt.Errorf("reach the registry: %w", err)
	}
	_ = answer.Body.Close()
	switch {
	case answer.StatusCode == http.StatusUnauthorized:
		return fmt.Errorf("%w (401)", ErrCredentialRefused)
	case answer.StatusCode == http.StatusForbidden:
		return ErrForbidden
	case answer.StatusCode >= http.StatusInternalServerError:
		return fmt.Errorf("the registry fails with status %d", answer.StatusCode)
	}
	return nil
}
