package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/bradleyfalzon/ghinstallation/v2"
	"github.com/google/go-github/v66/github"
)

// Wrap turns an error of a call into an *Error. It returns nil and an *Error unchanged.
func (op *Operation) Wrap(err error) error {
	if err == nil {
		return nil
	}
	var done *Error
	if errors.As(err, &done) {
		return err
	}
	e := &Error{Op: op.description, Err: err}
	var limit *LimitError
	var primary *github.RateLimitError
	var abuse *github.AbuseRateLimitError
	var refused *github.ErrorResponse
	var gql *GraphQLError
	var tokenError *ghinstallation.HTTPError
	var own interface{ Explain(e *Error) }
	switch {
	case errors.As(err, &limit):
		op.fillLimited(e, limit)
	case errors.As(err, &primary): // by go-github, from the headers of the last response
		op.fillLimited(e, &LimitError{Kind: LimitPrimary, Until: primary.Rate.Reset.Time})
	case errors.As(err, &abuse):
		op.fillLimited(e, &LimitError{Kind: LimitSecondary, Until: op.now().Add(abuse.GetRetryAfter())})
	case errors.As(err, &own):
		own.Explain(e)
	case errors.Is(err, errSecretRef):
		e.Class, e.Reason = ClassPermanent, "The name of the branch contains a secret."
		e.Hint = "Change the issue's title or `branch:` in `.errand.yml`, then comment `replan`."
	case errors.Is(err, ErrRenamed):
		e.Class, e.Reason = ClassTemporary, "The repository was renamed or moved."
	case errors.As(err, &tokenError) && tokenError.Response != nil:
		op.noToken(e, tokenError.Response.StatusCode)
	case errors.Is(err, ErrNotInstalled):
		op.noToken(e, StatusOf(err))
	case errors.As(err, &gql):
		gql.fillError(e)
		switch {
		case e.Class == ClassUnknown && op.kind == kindRead:
			e.Class = ClassTemporary
		case Forbidden(gql) && strings.Contains(gql.Error(), "not accessible by integration") && op.renewGrant():
			e.Class, e.Reason, e.Hint = ClassTemporary, "GitHub's access token is older than the App's permissions.", ""
		}
	case errors.As(err, &refused) && refused.Response != nil:
		op.fillRefused(e, refused)
	default:
		op.fillUnanswered(e)
	}
	return e
}

// fillLimited fills in e for a rate limit.
func (op *Operation) fillLimited(e *Error, l *LimitError) {
	e.Class, e.Retry, e.Err = ClassTemporary, l.Until, l
	e.Reason = "GitHub's rate limit for this installation is used up."
	if l.Kind == LimitLocal {
		e.Reason = "Too many writes to GitHub are waiting."
	}
	e.Hint = "No action is needed: errand continues at " + l.Until.UTC().Format("15:04 MST") + "."
}

// fillUnanswered fills in e for a call without a response. Only a write that left this process may have had its effect.
func (op *Operation) fillUnanswered(e *Error) {
	e.Class, e.Reason = ClassTemporary, "GitHub could not be reached."
	if op.kind != kindRead && op.kind != kindData && op.sent.Load() {
		e.Class, e.Reason = ClassUnknown, "GitHub did not answer."
	}
	if errors.Is(e.Err, context.DeadlineExceeded) {
		e.Reason = "GitHub did not answer in time."
	}
}

// fillRefused fills in e from an HTTP response that is not a success.
func (op *Operation) fillRefused(e *Error, r *github.ErrorResponse) {
	e.Status = r.Response.StatusCode
	message := messageOf(r)
	switch {
	case e.Status >= 500:
		e.Class, e.Reason = ClassTemporary, fmt.Sprintf("GitHub failed with an internal error (%d).", e.Status)
		if op.kind == kindWrite {
			e.Class = ClassUnknown
		}
	case e.Status == http.StatusNotFound || e.Status == http.StatusGone:
		e.Class, e.Reason = ClassPermanent, "It does not exist on GitHub, or errand has no access to it."
		e.Hint = "Check that the App is installed on the repository and has accepted its permissions."
		e.Err = fmt.Errorf("%w: %w", ErrNotFound, r)
	case e.Status == http.StatusUnauthorized && op.renewToken():
		e.Class, e.Reason = ClassTemporary, "GitHub's access token was revoked early."
	case e.Status == http.StatusUnauthorized:
		e.Class, e.Reason = ClassPermanent, "GitHub does not accept the App's credentials."
		e.Hint = "An operator should check the App's ID, its private key and the clock of this host."
	case e.Status == http.StatusForbidden && strings.Contains(message, "is locked"):
		e.fillLocked(r)
	case e.Status == http.StatusForbidden && strings.Contains(message, "not accessible by integration") && op.renewGrant():
		e.Class, e.Reason = ClassTemporary, "GitHub's access token is older than the App's permissions."
	case e.Status == http.StatusForbidden:
		e.Class, e.Reason = ClassPermanent, "GitHub does not allow it: "+message
		e.Hint = permissionHint(r.Response.Header.Get("X-Accepted-GitHub-Permissions"))
	default:
		e.Class, e.Reason = ClassPermanent, "GitHub refused it: "+message
	}
}

// renewToken reports whether the operation's token was replaced.
func (op *Operation) renewToken() bool {
	return op.client != nil && op.installation != 0 && op.client.renewTokens()
}

// renewGrant is renewToken, unless the token is newer than the operation.
func (op *Operation) renewGrant() bool {
	return op.client != nil && op.installation != 0 && op.client.renewOldTokens(op.began)
}

// NotGranted reports whether GitHub refused a call because the installation lacks a permission.
func NotGranted(err error) bool {
	var r *github.ErrorResponse
	return errors.As(err, &r) && r.Response.StatusCode == http.StatusForbidden &&
		strings.Contains(messageOf(r), "not accessible by integration")
}

func permissionHint(accepted string) string {
	if accepted == "" {
		return "An owner may have to accept the App's permissions in the installation's settings."
	}
	return fmt.Sprintf("The App needs %s; an owner can accept it in the installation's settings.", accepted)
}

// noToken fills in e for an installation for which GitHub issued no token.
func (op *Operation) noToken(e *Error, status int) {
	e.Status = status
	if status >= 500 {
		e.Class, e.Reason = ClassTemporary, fmt.Sprintf("GitHub failed with an internal error (%d).", status)
		return
	}
	e.Class, e.Reason = ClassPermanent, "GitHub denies the App access to this account."
	e.Hint = "The App may have been uninstalled or suspended; an owner can check the installed Apps of the account."
	if status == http.StatusUnauthorized {
		e.Reason = "GitHub does not accept the App's credentials."
		e.Hint = "An operator should check the App's ID, its private key and the clock of this host."
		return
	}
	if !errors.Is(e.Err, ErrNotInstalled) {
		e.Err = fmt.Errorf("%w: %w", ErrNotInstalled, e.Err)
	}
}

// messageOf returns GitHub's message and its field errors as one sentence.
func messageOf(r *github.ErrorResponse) string {
	parts := []string{strings.TrimSuffix(r.Message, ".")}
	for _, f := range r.Errors {
		switch {
		case f.Message != "":
			parts = append(parts, strings.TrimSuffix(f.Message, "."))
		case f.Field != "":
			parts = append(parts, f.Field+" is "+strings.ReplaceAll(f.Code, "_", " "))
		}
	}
	return strings.Join(parts, "; ") + "."
}

// StatusOf returns the HTTP status of err, 0 if it has none.
func StatusOf(err error) int {
	var e *Error
	if errors.As(err, &e) && e.Status != 0 {
		return e.Status
	}
	var r *github.ErrorResponse
	if errors.As(err, &r) && r.Response != nil {
		return r.Response.StatusCode
	}
	return 0
}

// Invalid returns GitHub's message, in lower case, if it rejected a call as invalid (422); otherwise an empty string.
func Invalid(err error) string {
	var e *github.ErrorResponse
	if !errors.As(err, &e) || StatusOf(err) != http.StatusUnprocessableEntity {
		return ""
	}
	return strings.ToLower(messageOf(e))
}

// fillLocked fills in the error of a comment in a locked conversation.
func (e *Error) fillLocked(cause error) {
	e.Class, e.Reason = ClassTemporary, "The conversation is locked, so no App can comment."
	e.Hint = "errand will comment once somebody unlocks it."
	e.Err = fmt.Errorf("%w: %w", ErrLocked, cause)
}
