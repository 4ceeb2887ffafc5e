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

// Wrap turns what a call returned into an *Error. A nil err stays nil, an *Error stays as it is.
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
	var minting *ghinstallation.HTTPError
	var own interface{ Explain(e *Error) }
	switch {
	case errors.As(err, &limit):
		op.limited(e, limit)
	case errors.As(err, &primary): // go-github refused by itself, from the last answer's headers
		op.limited(e, &LimitError{Kind: LimitPrimary, Until: primary.Rate.Reset.Time})
	case errors.As(err, &abuse):
		op.limited(e, &LimitError{Kind: LimitSecondary, Until: op.now().Add(abuse.GetRetryAfter())})
	case errors.As(err, &own):
		own.Explain(e)
	case errors.Is(err, errSecretRef):
		e.Class, e.Reason = ClassPermanent, "The name of the branch holds a secret."
		e.Hint = "Change the issue's title or `branch:` in `.errand.yml`, then comment `replan`."
	case errors.Is(err, ErrRenamed):
		e.Class, e.Reason = ClassTemporary, "The repository was renamed or moved."
	case errors.As(err, &minting) && minting.Response != nil:
		op.noToken(e, minting.Response.StatusCode)
	case errors.Is(err, ErrNotInstalled):
		op.noToken(e, StatusOf(err))
	case errors.As(err, &gql):
		gql.explain(e)
		if e.Class == ClassUnknown && op.kind == kindRead {
			e.Class = ClassTemporary
		}
	case errors.As(err, &refused) && refused.Response != nil:
		op.refused(e, refused)
	default:
		op.unanswered(e)
	}
	return e
}

// limited fills e for a limit of GitHub's or our own pace.
func (op *Operation) limited(e *Error, l *LimitError) {
	e.Class, e.Retry, e.Err = ClassTemporary, l.Until, l
	e.Reason = "GitHub's rate limit for this installation is used up."
	if l.Kind == LimitLocal {
		e.Reason = "Too much is waiting to be written to GitHub."
	}
	e.Hint = "Nothing needs to be done: it goes on by itself at " + l.Until.UTC().Format("15:04 MST") + "."
}

// unanswered fills e for a call without an answer: only a write that left this process may have had
// its effect.
func (op *Operation) unanswered(e *Error) {
	e.Class, e.Reason = ClassTemporary, "GitHub could not be reached."
	if op.kind != kindRead && op.kind != kindData && op.sent.Load() {
		e.Class, e.Reason = ClassUnknown, "GitHub did not answer."
	}
	if errors.Is(e.Err, context.DeadlineExceeded) {
		e.Reason = "GitHub did not answer in time."
	}
}

// refused fills e from an HTTP answer that is not a success.
func (op *Operation) refused(e *Error, r *github.ErrorResponse) {
	e.Status = r.Response.StatusCode
	said := messageOf(r)
	switch {
	case e.Status >= 500:
		e.Class, e.Reason = ClassTemporary, fmt.Sprintf("GitHub answered with an error of its own (%d).", e.Status)
		if op.kind == kindWrite {
			e.Class = ClassUnknown
		}
	case e.Status == http.StatusNotFound || e.Status == http.StatusGone:
		e.Class, e.Reason = ClassPermanent, "GitHub does not know it, or errand may not see it."
		e.Hint = "Check that the App is installed on the repository and has accepted its permissions."
		e.Err = fmt.Errorf("%w: %w", ErrNotFound, r)
	case e.Status == http.StatusUnauthorized && op.renewToken():
		e.Class, e.Reason = ClassTemporary, "GitHub's access token ended early."
	case e.Status == http.StatusUnauthorized:
		e.Class, e.Reason = ClassPermanent, "GitHub does not accept the App's credentials."
		e.Hint = "An operator should check the App's id, its private key and this computer's clock."
	case e.Status == http.StatusForbidden && strings.Contains(said, "is locked"):
		e.Class, e.Reason = ClassTemporary, "The conversation is locked, so that no App may comment."
		e.Hint = "What errand has to say waits until somebody unlocks it."
		e.Err = fmt.Errorf("%w: %w", ErrLocked, r)
	case e.Status == http.StatusForbidden && strings.Contains(said, "not accessible by integration") && op.renewGrant():
		e.Class, e.Reason = ClassTemporary, "GitHub's access token is older than the App's permissions."
	case e.Status == http.StatusForbidden:
		e.Class, e.Reason = ClassPermanent, "GitHub does not allow it: "+said
		e.Hint = permissionHint(r.Response.Header.Get("X-Accepted-GitHub-Permissions"))
	default:
		e.Class, e.Reason = ClassPermanent, "GitHub refused it: "+said
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

// NotGranted reports whether GitHub refused a call because the installation does not grant a permission for it.
func NotGranted(err error) bool {
	var r *github.ErrorResponse
	return errors.As(err, &r) && r.Response.StatusCode == http.StatusForbidden && strings.Contains(messageOf(r), "not accessible by integration")
}

func permissionHint(accepted string) string {
	if accepted == "" {
		return "An owner may have to accept the App's permissions in the installation's settings."
	}
	return fmt.Sprintf("The App needs %s; an owner can accept it in the installation's settings.", accepted)
}

// noToken fills e for an installation that GitHub gave no token for.
func (op *Operation) noToken(e *Error, status int) {
	e.Status = status
	if status >= 500 {
		e.Class, e.Reason = ClassTemporary, fmt.Sprintf("GitHub answered with an error of its own (%d).", status)
		return
	}
	e.Class, e.Reason = ClassPermanent, "GitHub gives the App no access here."
	e.Hint = "The App may have been uninstalled or suspended; an owner can look at the account's installed Apps."
	if status == http.StatusUnauthorized {
		e.Reason = "GitHub does not accept the App's credentials."
		e.Hint = "An operator should check the App's id, its private key and this computer's clock."
		return
	}
	if !errors.Is(e.Err, ErrNotInstalled) {
		e.Err = fmt.Errorf("%w: %w", ErrNotInstalled, e.Err)
	}
}

// messageOf joins GitHub's message and its field errors into one sentence.
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

// StatusOf returns the HTTP status that err carries, 0 without one.
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

// Invalid returns GitHub's message with a 422, in lower case, else nothing.
func Invalid(err error) string {
	var e *github.ErrorResponse
	if !errors.As(err, &e) || StatusOf(err) != http.StatusUnprocessableEntity {
		return ""
	}
	return strings.ToLower(messageOf(e))
}
