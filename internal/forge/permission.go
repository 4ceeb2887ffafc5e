package forge

import (
	"cmp"
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

// Identity returns the name and the email address that identify a person in commits: the name of their profile, which may be
// any text, or else their login; and their noreply address. Both are empty for an account that cannot be identified.
func (f *Forge) Identity(ctx context.Context, r Repo, p state.Person) (name, email string, err error) {
	op, err := f.client.Read(ctx, r.Installation, "read profile", "of "+p.Login)
	if err != nil {
		return "", "", err
	}
	login := p.Login
	got, _, err := op.GitHub.Users.GetByID(op.Ctx, p.ID)
	if err := op.Wrap(err); err != nil && !errors.Is(err, ErrNotFound) {
		return "", "", err
	} else if err == nil {
		login = got.GetLogin()
	}
	if p.ID == 0 || !plainLogin(login) {
		return "", "", nil
	}
	return cmp.Or(got.GetName(), login), f.client.NoreplyAddress(p.ID, login), nil
}

// plainLogin reports whether login has the form of a login, so that it can be part of an address.
func plainLogin(login string) bool {
	if login == "" || len(login) > 100 {
		return false
	}
	return strings.Trim(strings.TrimSuffix(login, "[bot]"), "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == ""
}

// CanBeAssigned reports whether issues of a repository can be assigned to an account.
func (f *Forge) CanBeAssigned(ctx context.Context, r Repo, login string) (bool, error) {
	op, err := f.client.Read(ctx, r.Installation, "check assignee", login+" in "+r.FullName())
	if err != nil {
		return false, err
	}
	ok, _, err := op.GitHub.Issues.IsAssignee(op.Ctx, r.Owner, r.Name, login)
	return ok, op.Wrap(err)
}
