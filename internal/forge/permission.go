package forge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
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

// IsTeamMember reports whether a person is an active member of a team or of one of its child teams, as GitHub says now, and returns the ID
// of the organization. A team that does not exist has no members. The reasons of its errors do not name the organization, because people who
// are no operators read them.
func (f *Forge) IsTeamMember(ctx context.Context, organization, team string, who state.Person) (member bool, organizationID int64, err error) {
	about := fmt.Sprintf("of %s in %s/%s", who.Login, organization, team)
	in, err := f.teamInstallation(ctx, organization, about)
	if err != nil {
		return false, 0, err
	}
	if !plainLogin(who.Login) {
		return false, in.Account.ID, nil
	}
	op, err := f.client.Read(ctx, in.ID, "read team membership", about)
	if err != nil {
		return false, 0, err
	}
	got, _, err := op.GitHub.Teams.GetTeamMembershipBySlug(op.Ctx, organization, team, who.Login)
	if err := op.Wrap(err); err != nil && !errors.Is(err, ErrNotFound) {
		return false, 0, err
	}
	return got.GetState() == "active", in.Account.ID, nil
}

// teamInstallation returns the App's installation on an organization, from the cache if that one grants the permission for teams. The
// error names the missing installation or permission.
func (f *Forge) teamInstallation(ctx context.Context, organization, about string) (Installation, error) {
	for _, in := range f.recentInstallations() {
		if strings.EqualFold(in.Account.Login, organization) && !in.Suspended && !in.lacksTeams() {
			return in, nil
		}
	}
	op, err := f.client.Read(ctx, 0, "find the installation of a team", about)
	if err != nil {
		return Installation{}, err
	}
	got, _, err := op.GitHub.Apps.FindOrganizationInstallation(op.Ctx, organization)
	refuse := func(reason, hint string, cause error) error {
		return &Error{Op: strings.TrimSpace("read team membership " + about), Reason: reason, Hint: hint, Class: ClassPermanent, Err: cause}
	}
	if err = op.Wrap(err); errors.Is(err, ErrNotFound) {
		return Installation{}, refuse("The App is not installed on the team's organization.", "An owner of "+organization+" installs it.", ErrNotInstalled)
	}
	if err != nil {
		return Installation{}, err
	}
	in := installationOf(got)
	f.cacheInstallations(in)
	switch {
	case in.Suspended:
		return Installation{}, refuse("The App's installation on the team's organization is suspended.", "An owner unsuspends it at "+in.URL+".", ErrNotInstalled)
	case in.lacksTeams():
		p := TeamPermission()
		return Installation{}, refuse(fmt.Sprintf("The App lacks the permission `%s: %s` in the team's organization.", p.Permission, p.Level),
			"An owner grants it at "+in.URL+".", errors.New("the installation does not grant it"))
	}
	return in, nil
}

// lacksTeams reports whether the installation does not let the App read who is a member of a team.
func (i Installation) lacksTeams() bool {
	return slices.ContainsFunc(i.MissingPermissions(TeamPermission()), func(m MissingPermission) bool { return m.AppPermission == TeamPermission() })
}

// recentInstallations returns the cached installations that need not be read again.
func (f *Forge) recentInstallations() (list []Installation) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, in := range f.installations {
		if !in.read.IsZero() && f.client.Now().Sub(in.read) < installationTTL {
			list = append(list, in.Installation)
		}
	}
	return list
}

// TeamExists reports whether the App sees a team in the organization of an installation.
func (f *Forge) TeamExists(ctx context.Context, installation int64, organization, team string) (bool, error) {
	op, err := f.client.Read(ctx, installation, "read a team", organization+"/"+team)
	if err != nil {
		return false, err
	}
	_, _, err = op.GitHub.Teams.GetTeamBySlug(op.Ctx, organization, team)
	if err = op.Wrap(err); errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}
