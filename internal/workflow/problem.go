package workflow

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/errand-bot/errand/internal/forge"
)

// Problem is an error of a step that knows what to tell people.
type Problem struct {
	Reason, Hint, Class string
	Permanent           bool
	Retry               time.Time
	Err                 error
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

// Trouble says what an error of a step means: whether to try again, when, and what to tell people.
func Trouble(err error) Problem {
	var p *Problem
	if errors.As(err, &p) {
		return *p
	}
	var onGitHub *forge.Error
	if errors.As(err, &onGitHub) {
		class, at := forge.Classify(err)
		reason, hint := forge.Explain(err)
		return Problem{Reason: reason, Hint: hintOr(hint), Class: "github", Permanent: class == forge.ClassPermanent, Retry: at, Err: err}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return Problem{Reason: "A step took too long.", Hint: hintOr(""), Class: "timeout", Err: err}
	}
	return Problem{Reason: "Something went wrong on errand's side.", Hint: "The operator finds the details in the log. Comment `retry` to try again.", Class: "internal", Err: err}
}

// insist makes an error of a job that carries a person's word one that passes: GitHub's no may, such as
// while the App's permissions are being changed, and nobody says the word again. Only where the App is not
// installed any more there is nobody left to answer.
func insist(err error) error {
	p := Trouble(err)
	if err == nil || !p.Permanent || p.Class != "github" || errors.Is(err, forge.ErrNotInstalled) {
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
