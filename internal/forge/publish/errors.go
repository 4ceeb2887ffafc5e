package publish

import (
	"errors"
	"fmt"

	"github.com/errand-bot/errand/internal/forge/client"
)

// What callers decide by. They are matched with errors.Is.
var (
	// ErrMoved: a branch is not where it was expected to be: somebody pushed. See MovedError.
	ErrMoved = errors.New("branch has moved")
	// ErrTreeMismatch: GitHub made another tree of a changeset's data than the VM had.
	ErrTreeMismatch error = &permanentError{"published tree differs from the VM's tree", "The commits could not be published unchanged."}
	// ErrIncomplete: a changeset names content that it does not carry.
	ErrIncomplete error = &permanentError{"changeset is incomplete", "The commits could not be published unchanged."}
)

// errTreeTooLarge is for a repository beyond all measure.
var errTreeTooLarge error = &permanentError{"the tree is too large to be read", "The repository is too large to be read."}

// A permanentError fails again until a person changes something.
type permanentError struct{ text, reason string }

func (e *permanentError) Error() string { return e.text }

// Explain fills in the class and the reason.
func (e *permanentError) Explain(in *client.Error) {
	in.Class, in.Reason = client.ClassPermanent, e.reason
}

// MovedError tells where a branch is instead. It matches ErrMoved.
type MovedError struct {
	Branch string
	Want   string // where it was expected to be
	Head   string // where it is; empty when the branch does not exist
}

// Error says where the branch is and where it should have been.
func (e *MovedError) Error() string {
	return fmt.Sprintf("branch %s is at %s, expected %s", e.Branch, orNone(e.Head), orNone(e.Want))
}

// Is makes errors.Is(err, ErrMoved) true.
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
