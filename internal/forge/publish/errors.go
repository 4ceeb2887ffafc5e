package publish

import (
	"errors"
	"fmt"

	"github.com/errand-bot/errand/internal/forge/client"
)

// Errors to match with errors.Is.
var (
	// ErrMoved: a branch is at another commit than expected, because somebody pushed. See MovedError.
	ErrMoved = errors.New("branch has moved")
	// ErrTreeMismatch: the tree that GitHub created from a changeset differs from the VM's.
	ErrTreeMismatch error = &permanentError{"published tree differs from the VM's tree", "The commits could not be published unchanged."}
	// ErrIncomplete: a changeset lacks content that it refers to.
	ErrIncomplete error = &permanentError{"changeset is incomplete", "The commits could not be published unchanged."}
)

// errTreeTooLarge means that a tree takes more than maxTreeReads requests.
var errTreeTooLarge error = &permanentError{"the tree is too large to be read", "The repository is too large to be read."}

// A permanentError is of class client.ClassPermanent.
type permanentError struct{ text, reason string }

func (e *permanentError) Error() string { return e.text }

// Explain fills in the class and the reason.
func (e *permanentError) Explain(in *client.Error) {
	in.Class, in.Reason = client.ClassPermanent, e.reason
}

// MovedError is the error for a branch that is at another commit than expected. It matches ErrMoved.
type MovedError struct {
	Branch string
	Want   string // the expected commit, empty if the branch should not exist
	Head   string // the actual commit, empty if the branch does not exist
}

// Error returns the branch with its actual and its expected commit.
func (e *MovedError) Error() string {
	return fmt.Sprintf("branch %s is at %s, expected %s", e.Branch, orNone(e.Head), orNone(e.Want))
}

// Is reports whether target is ErrMoved.
func (e *MovedError) Is(target error) bool { return target == ErrMoved }

// Explain fills in the class and the reason.
func (e *MovedError) Explain(in *client.Error) {
	in.Class, in.Reason = client.ClassPermanent, "Somebody else changed the branch meanwhile."
}

func orNone(sha string) string {
	if sha == "" {
		return "no commit"
	}
	return sha
}
