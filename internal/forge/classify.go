package forge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/bradleyfalzon/ghinstallation/v2"
	"github.com/google/go-github/v66/github"
)

// wrap turns what a call returned into an *Error. A nil err stays nil, an *Error stays as it is.
func (c *call) wrap(err error) error {
	if err == nil {
		return nil
	}
	var done *Error
	if errors.As(err, &done) {
		return err
	}
	e := &Error{Op: c.op, Err: err}
	var limit *LimitError
	var primary *github.RateLimitError
	var abuse *github.AbuseRateLimitError
	var refused *github.ErrorResponse
	var gql *GraphQLError
	var moved *MovedError
	var minting *ghinstallation.HTTPError
	var large *LargeFileError
	switch {
	case errors.As(err, &limit):
		c.limited(e, limit)
	case errors.As(err, &primary): // go-github refused by itself, from the last answer's headers
		c.limited(e, &LimitError{Kind: LimitPrimary, Until: primary.Rate.Reset.Time})
	case errors.As(err, &abuse):
		c.limited(e, &LimitError{Kind: LimitSecondary, Until: c.now().Add(abuse.GetRetryAfter())})
	case errors.As(err, &large):
		large.explain(e)
	case errors.As(err, &moved):
		e.Class, e.Reason = ClassPermanent, "Somebody else changed the branch meanwhile."
	case errors.Is(err, ErrTreeMismatch), errors.Is(err, ErrIncomplete):
		e.Class, e.Reason = ClassPermanent, "The commits could not be published unchanged."
	case errors.Is(err, errTreeTooLarge):
		e.Class, e.Reason = ClassPermanent, "The repository is too large to be read."
	case errors.Is(err, errSecretRef):
		e.Class, e.Reason = ClassPermanent, "The name of the branch holds a secret."
		e.Hint = "Change the issue's title or `branch:` in `.errand.yml`, then comment `replan`."
	case errors.Is(err, ErrRenamed):
		e.Class, e.Reason = ClassTemporary, "The repository was renamed or moved."
	case errors.As(err, &minting) && minting.Response != nil:
		c.noToken(e, minting.Response.StatusCode)
	case errors.Is(err, ErrNotInstalled):
		c.noToken(e, statusOf(err))
	case errors.As(err, &gql):
		gql.explain(e)
		if e.Class == ClassUnknown && c.kind == kindRead {
			e.Class = ClassTemporary
		}
	case errors.As(err, &refused) && refused.Response != nil:
		c.refused(e, refused)
	default:
		c.unanswered(e)
	}
	return e
}

// limited fills e for a limit of GitHub's or our own pace.
func (c *call) limited(e *Error, l *LimitError) {
	e.Class, e.Retry, e.Err = ClassTemporary, l.Until, l
	e.Reason = "GitHub's rate limit for this installation is used up."
	if l.Kind == LimitPace {
		e.Reason = "Too much is waiting to be written to GitHub."
	}
	e.Hint = "Nothing needs to be done: it goes on by itself at " + l.Until.UTC().Format("15:04 MST") + "."
}

// unanswered fills e for a call without an answer: only a write that left this process may have had
// its effect.
func (c *call) unanswered(e *Error) {
	e.Class, e.Reason = ClassTemporary, "GitHub could not be reached."
	if c.kind != kindRead && c.kind != kindData && c.sent.Load() {
		e.Class, e.Reason = ClassUnknown, "GitHub did not answer."
	}
	if errors.Is(e.Err, context.DeadlineExceeded) {
		e.Reason = "GitHub did not answer in time."
	}
}

// refused fills e from an HTTP answer that is not a success.
func (c *call) refused(e *Error, r *github.ErrorResponse) {
	e.Status = r.Response.StatusCode
	said := saidBy(r)
	switch {
	case e.Status >= 500:
		e.Class, e.Reason = ClassTemporary, fmt.Sprintf("GitHub answered with an error of its own (%d).", e.Status)
		if c.kind == kindWrite {
			e.Class = ClassUnknown
		}
	case e.Status == http.StatusNotFound || e.Status == http.StatusGone:
		e.Class, e.Reason = ClassPermanent, "GitHub does not know it, or errand may not see it."
		e.Hint = "Check that the App is installed on the repository and has accepted its permissions."
		e.Err = fmt.Errorf("%w: %w", ErrNotFound, r)
	case e.Status == http.StatusUnauthorized && c.renew != nil && c.renew():
		e.Class, e.Reason = ClassTemporary, "GitHub's access token ended early."
	case e.Status == http.StatusUnauthorized:
		e.Class, e.Reason = ClassPermanent, "GitHub does not accept the App's credentials."
		e.Hint = "An operator should check the App's id, its private key and this computer's clock."
	case e.Status == http.StatusForbidden && strings.Contains(said, "is locked"):
		e.Class, e.Reason = ClassTemporary, "The conversation is locked, so that no App may comment."
		e.Hint = "What errand has to say waits until somebody unlocks it."
		e.Err = fmt.Errorf("%w: %w", ErrLocked, r)
	case e.Status == http.StatusForbidden && strings.Contains(said, "not accessible by integration") && c.regrant != nil && c.regrant():
		e.Class, e.Reason = ClassTemporary, "GitHub's access token is older than the App's permissions."
	case e.Status == http.StatusForbidden:
		e.Class, e.Reason = ClassPermanent, "GitHub does not allow it: "+said
		e.Hint = permissionHint(r.Response.Header.Get("X-Accepted-GitHub-Permissions"))
	default:
		e.Class, e.Reason = ClassPermanent, "GitHub refused it: "+said
	}
}

// notGranted reports whether GitHub refused a call because the installation does not grant a permission for it.
func notGranted(err error) bool {
	var r *github.ErrorResponse
	return errors.As(err, &r) && r.Response.StatusCode == http.StatusForbidden && strings.Contains(saidBy(r), "not accessible by integration")
}

func permissionHint(accepted string) string {
	if accepted == "" {
		return "An owner may have to accept the App's permissions in the installation's settings."
	}
	return fmt.Sprintf("The App needs %s; an owner can accept it in the installation's settings.", accepted)
}

// noToken fills e for an installation that GitHub gave no token for.
func (c *call) noToken(e *Error, status int) {
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

// saidBy joins GitHub's message and its field errors into one sentence.
func saidBy(r *github.ErrorResponse) string {
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

// statusOf returns the HTTP status that err carries, 0 without one.
func statusOf(err error) int {
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
