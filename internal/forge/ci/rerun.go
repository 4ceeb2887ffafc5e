package ci

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/internal/forge/client"
	"github.com/errand-bot/errand/internal/forge/green"
)

// Errors of RerunCheck, to match with errors.Is.
var (
	// ErrCannotRerun: GitHub does not run the check again: it is a commit status, another App's, too old, or deleted.
	ErrCannotRerun = errors.New("the check cannot be run again")
	// ErrStillRunning: another job of the same workflow run is not complete, and GitHub runs no job again before. Call again later.
	ErrStillRunning = errors.New("the workflow is still running")
)

// rerunError is a check that is not run again, with the reason for people.
type rerunError struct {
	kind   error // one of the errors above
	reason string
	cause  error // may be nil
}

// Error returns the kind of the error and its cause.
func (e *rerunError) Error() string {
	if e.cause == nil {
		return e.kind.Error() + ": " + e.reason
	}
	return e.kind.Error() + ": " + e.cause.Error()
}

// Unwrap returns both.
func (e *rerunError) Unwrap() []error { return []error{e.kind, e.cause} }

// Explain fills in an error for people.
func (e *rerunError) Explain(into *client.Error) {
	into.Class, into.Reason, into.Status = client.ClassPermanent, e.reason, client.StatusOf(e.cause)
	if errors.Is(e.kind, ErrStillRunning) {
		into.Class = client.ClassTemporary
	}
}

// RerunCheck runs a failed job of GitHub Actions again, and the jobs that need it. It does nothing if the check has begun again since, so
// it can be repeated after a crash. The error is ErrCannotRerun for all other checks, and ErrStillRunning until the job's workflow run is
// complete. client.NotGranted recognizes the error for an App without the permission actions: write.
func (k *Checker) RerunCheck(ctx context.Context, r client.Repo, c green.Check) error {
	op, err := k.client.Write(ctx, r.Installation, "run a check again", fmt.Sprintf("%d of %s", c.ID, r.FullName()))
	if err != nil {
		return err
	}
	return op.Wrap(rerun(op, r, c))
}

func rerun(op *client.Operation, r client.Repo, c green.Check) error {
	switch {
	case c.Status:
		return &rerunError{kind: ErrCannotRerun, reason: "GitHub cannot repeat commit statuses."}
	case c.ID == 0:
		return &rerunError{kind: ErrCannotRerun, reason: "GitHub does not name the check's ID."}
	}
	read := op.Verify()
	if again, err := hasBegunAgain(read, r, c); again || err != nil {
		return read.Wrap(err)
	}
	_, err := op.GitHub.Actions.RerunJobByID(op.Ctx, r.Owner, r.Name, c.ID)
	var refused *github.ErrorResponse
	if err == nil || client.NotGranted(err) || !errors.As(err, &refused) {
		return err
	}
	switch status := client.StatusOf(err); {
	case status == http.StatusForbidden && strings.Contains(refused.Message, "already running"):
		return &rerunError{ErrStillRunning, "Another job of the workflow is still running.", err}
	case slices.Contains([]int{http.StatusForbidden, http.StatusUnprocessableEntity}, status):
		return &rerunError{ErrCannotRerun, "GitHub does not run it again: " + strings.TrimSuffix(text(refused.Message, green.MaxMessage), ".") + ".", err}
	case status == http.StatusNotFound || status == http.StatusGone:
		return &rerunError{ErrCannotRerun, "GitHub does not have the job any more.", err}
	}
	return err
}

// hasBegunAgain reports whether GitHub has a newer run of a check, or is running it now. The error is ErrCannotRerun for a check that is no
// job of GitHub Actions.
func hasBegunAgain(op *client.Operation, r client.Repo, c green.Check) (bool, error) {
	run, _, err := op.GitHub.Checks.GetCheckRun(op.Ctx, r.Owner, r.Name, c.ID)
	switch status := client.StatusOf(err); {
	case status == http.StatusNotFound || status == http.StatusGone:
		return false, &rerunError{ErrCannotRerun, "GitHub does not have the check any more.", err}
	case err != nil:
		return false, err
	case run.GetApp().GetSlug() != actionsSlug:
		return false, &rerunError{kind: ErrCannotRerun, reason: "GitHub can repeat jobs of GitHub Actions, but no checks of other Apps."}
	case run.GetStatus() != "completed":
		return true, nil
	}
	again := false
	err = client.Pages(func(page int) (int, error) {
		var answer github.ListCheckRunsResults
		next, err := op.Get(fmt.Sprintf("repos/%s/%s/check-suites/%d/check-runs?check_name=%s&filter=all&per_page=100&page=%d",
			r.Owner, r.Name, run.GetCheckSuite().GetID(), url.QueryEscape(run.GetName()), page), &answer)
		again = again || slices.ContainsFunc(answer.CheckRuns, func(k *github.CheckRun) bool { return k.GetName() == run.GetName() && k.GetID() > c.ID })
		return next, err
	})
	return again, err
}
