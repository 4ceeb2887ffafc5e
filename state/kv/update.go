package kv

import (
	"context"
	"errors"
)

// maxConflicts bounds how often [Update] tries an update whose values other writers keep changing.
const maxConflicts = 20

// Update runs fn in an update with the given name, and runs it again if another writer changed a value that it read.
// After 20 conflicts it returns [ErrConflict].
func Update(ctx context.Context, db DB, name string, fn func(Tx) error) error {
	ctx = Named(ctx, name)
	var err error
	for range maxConflicts {
		if err = db.Update(ctx, fn); !errors.Is(err, ErrConflict) {
			return err
		}
	}
	return err
}
