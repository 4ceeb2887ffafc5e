package hetzner

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"

	"github.com/errand-bot/errand/internal/fleet"
)

var (
	// errTemporary is a temporary error of a read.
	errTemporary = errors.New("the API did not respond")
	// errPartial is returned for an incomplete list.
	errPartial = errors.New("incomplete list")
	// errExists means that the name or key is taken.
	errExists = errors.New("already exists")
)

// codeReadOnly is the former error code for read-only tokens, now "forbidden".
const codeReadOnly hcloud.ErrorCode = "token_readonly"

// refusalOfCode returns the meaning of an error code. After a code in this table nothing was done.
func refusalOfCode(code hcloud.ErrorCode) error {
	switch code { //nolint:exhaustive // the rest says nothing definite
	case hcloud.ErrorCodeUnauthorized, hcloud.ErrorCodeForbidden, codeReadOnly:
		return fleet.ErrUnauthorized
	case hcloud.ErrorCodeRateLimitExceeded:
		return fleet.ErrLimited
	case hcloud.ErrorCodeResourceUnavailable, hcloud.ErrorCodePlacementError, hcloud.ErrorCodeNoSpaceLeftInLocation:
		return fleet.ErrNoCapacity
	case hcloud.ErrorCodeResourceLimitExceeded:
		return fleet.ErrQuota
	case hcloud.ErrorCodeLocked, hcloud.ErrorCodeConflict, hcloud.ErrorCodeServerNotStopped, hcloud.ErrorCodeResourceInUse:
		return fleet.ErrBusy
	case hcloud.ErrorCodeNotFound:
		return fleet.ErrNotFound
	case hcloud.ErrorCodeUniquenessError:
		return errExists
	case hcloud.ErrorCodeInvalidInput, hcloud.ErrorCodeJSONError, hcloud.ErrorCodeInvalidServerType, hcloud.ErrorCodeProtected,
		hcloud.ErrorUnsupportedError, hcloud.ErrorDeprecatedAPIEndpoint, hcloud.ErrorCodeResourceLocked,
		hcloud.ErrorCodePrivateNetOnlyServer, hcloud.ErrorCodeIPNotAvailable, hcloud.ErrorCodeIncompatibleNetworkType:
		return fleet.ErrInvalid
	default:
		return nil
	}
}

// translateError converts an error of hcloud-go. A mutation without a definite refusal has an unknown outcome, because
// the request may have been executed.
func translateError(err error, resp *hcloud.Response, mutation bool) error {
	meaning := meaningOf(err, resp)
	switch {
	case errors.Is(meaning, fleet.ErrNoCapacity):
		return &fleet.NoCapacityError{Reason: errorText(err)}
	case meaning != nil:
		return fmt.Errorf("%w: %s", meaning, errorText(err))
	case mutation:
		return fmt.Errorf("%w: %w", fleet.ErrUnknownOutcome, err)
	case errors.Is(err, context.Canceled):
		return err
	default:
		return fmt.Errorf("%w: %w", errTemporary, err)
	}
}

func meaningOf(err error, resp *hcloud.Response) error {
	var api hcloud.Error
	if errors.As(err, &api) {
		return refusalOfCode(api.Code)
	}
	if !errors.Is(err, hcloud.ErrStatusCode) || resp == nil || resp.Response == nil {
		return nil
	}
	switch resp.StatusCode { // not an API error: perhaps from a proxy
	case http.StatusUnauthorized, http.StatusForbidden:
		return fleet.ErrUnauthorized
	case http.StatusTooManyRequests:
		return fleet.ErrLimited
	default:
		return nil
	}
}

// errorText returns the text of an API error, including errors of single fields.
func errorText(err error) string {
	var api hcloud.Error
	if !errors.As(err, &api) {
		return err.Error()
	}
	text := api.Error()
	if details, ok := api.Details.(hcloud.ErrorDetailsInvalidInput); ok {
		for _, f := range details.Fields {
			text += "; " + f.Name + ": " + strings.Join(f.Messages, ", ")
		}
	}
	return text
}
