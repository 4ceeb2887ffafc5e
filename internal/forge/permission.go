package forge

import (
	"context"
	"errors"
	"strings"

	"github.com/errand-bot/errand/state"
)

// Permission returns the permission of a person in a repository. It is never cached. If the login now belongs to
// another user than userID, or to no user, it returns state.PermissionNone.
func (f *Forge) Permission(ctx context.Context, r Repo, login string, userID int64) (state.Permission, error) {
	if !plainLogin(login) {
		return state.PermissionNone, nil
	}
	op, err := f.client.Read(ctx, r.Installation, "read permission", "of "+login+" in "+r.FullName())
	if err != nil {
		return "", err
	}
	got, _, err := op.GitHub.Repositories.GetPermissionLevel(op.Ctx, r.Owner, r.Name, login)
	if err := op.Wrap(err); err != nil {
		if errors.Is(err, ErrNotFound) {
			return state.PermissionNone, nil
		}
		return "", err
	}
	if got.GetUser().GetID() != userID {
		return state.PermissionNone, nil
	}
	switch p := state.Permission(got.GetPermission()); p {
	case state.PermissionAdmin, state.PermissionWrite, state.PermissionRead:
		return p, nil
	}
	return state.PermissionNone, nil
}

// plainLogin reports whether login has the form of a login, so that it can be part of an address.
func plainLogin(login string) bool {
	if login == "" || len(login) > 100 {
		return false
	}
	return strings.Trim(strings.TrimSuffix(login, "[bot]"), "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == ""
}
