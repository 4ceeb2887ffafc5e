package step

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/state"
)

// A Problem is an error of a step that is reported to people.
type Problem struct {
	Reason, Hint string
	Class        state.FailureClass
	Permanent    bool
	Retry        time.Time
	Err          error
}

// Error returns the operator's view.
func (p *Problem) Error() string {
	if p.Err == nil {
		return p.Reason
	}
	return fmt.Sprintf("%s: %v", p.Reason, p.Err)
}

// Unwrap returns the cause.
func (p *Problem) Unwrap() error { return p.Err }

// ProblemOf returns the problem that an error of a step is or stands for: whether to retry, when, and the text for
// people.
func ProblemOf(err error) Problem {
	var p *Problem
	if errors.As(err, &p) {
		return *p
	}
	var onGitHub *forge.Error
	if errors.As(err, &onGitHub) {
		class, at := forge.Classify(err)
		reason, hint := forge.Explain(err)
		return Problem{Reason: reason, Hint: hintOr(hint), Class: state.ClassGitHub, Permanent: class == forge.ClassPermanent,
			Retry: at, Err: err}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return Problem{Reason: "A step took too long.", Hint: hintOr(""), Class: state.ClassTimeout, Err: err}
	}
	return Problem{Reason: "Something went wrong on errand's side.", Hint: "The operator finds the details in the log. Comment `retry` to try again.", Class: state.ClassInternal, Err: err}
}

// Retryable makes an error of a job that nothing else repeats a temporary one, such as one that carries a person's comment or
// approval: GitHub's refusal may be temporary, for example while the App's permissions are being changed.
// It does not wait for an App that was uninstalled.
func Retryable(err error) error {
	p := ProblemOf(err)
	if err == nil || !p.Permanent || p.Class != state.ClassGitHub || errors.Is(err, forge.ErrNotInstalled) {
		return err
	}
	p.Permanent, p.Err = false, err
	return &p
}

func hintOr(hint string) string {
	if hint == "" {
		return "Comment `retry` to try again."
	}
	return hint
}

// Heads reads the commits of branches.
type Heads interface {
	Head(ctx context.Context, r forge.Repo, branch string) (string, error)
}

// BranchGone returns the Problem that the task's branch was deleted, with cause as its error, if that is so; otherwise
// it returns cause. With a deleted branch a retry does not help.
func BranchGone(ctx context.Context, github Heads, w *Attempt, cause error) error {
	t := w.Task
	if t.Branch.Head == "" {
		return cause
	}
	if _, err := github.Head(ctx, w.Repo, t.Branch.Name); !errors.Is(err, forge.ErrNotFound) {
		return cause
	}
	return BranchDeleted(t, cause)
}

// BranchDeleted returns the Problem of a task whose branch was deleted.
func BranchDeleted(t *state.Task, cause error) *Problem {
	hint := "Restore it and comment `retry`, or comment `replan` to start again."
	if t.PR != nil {
		hint = "Restore it, then comment `retry`."
	}
	return &Problem{Reason: fmt.Sprintf("The branch `%s` was deleted.", t.Branch.Name), Hint: hint, Class: state.ClassGitHub, Permanent: true, Err: cause}
}
