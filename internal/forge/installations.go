package forge

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/internal/forge/client"
	"github.com/errand-bot/errand/state"
)

// Installation is an installation of the App on an account.
type Installation struct {
	ID          int64
	Account     state.Person
	Suspended   bool
	Permissions map[string]string // level by name, such as issues: write
	Events      []string          // webhook events that it sends
	URL         string            // its settings page, where an owner grants permissions
}

// MissingPermissions returns the permissions that the installation does not grant at the required level: those of AppPermissions, and more.
func (i Installation) MissingPermissions(more ...AppPermission) []MissingPermission {
	levels := []string{"", "read", "write", "admin"}
	var list []MissingPermission
	for _, n := range append(AppPermissions(), more...) {
		granted := i.Permissions[n.Permission]
		if slices.Index(levels, granted) >= slices.Index(levels, n.Level) {
			continue
		}
		if granted == "" {
			granted = "none"
		}
		list = append(list, MissingPermission{AppPermission: n, Granted: granted})
	}
	return list
}

// MissingEvents returns the wanted events that the installation does not send.
func (i Installation) MissingEvents(wanted []string) []string {
	return slices.DeleteFunc(slices.Clone(wanted), func(e string) bool { return slices.Contains(i.Events, e) })
}

// installationTTL is how long an installation is cached, unless a webhook reports a change. GitHub may send no webhook
// when a permission is removed, and a useless run of an agent costs more than the request.
const installationTTL = 5 * time.Minute

// AppPermission is a permission that errand uses.
type AppPermission struct {
	Permission string // name in GitHub's API
	Level      string // read or write
	Required   bool   // no task can be completed without it
	For        string // purpose, for people
}

// AppPermissions returns the permissions that the App requests: its manifest and app.yml are made from this list.
func AppPermissions() []AppPermission {
	return []AppPermission{
		{"issues", "write", true, "reading issues and answering in comments"},
		{"pull_requests", "write", true, "opening pull requests, answering reviews, resolving threads, and requesting reviews"},
		{"contents", "write", true, "reading the repository and publishing commits"},
		{"metadata", "read", true, "finding the repository and asking who may write to it"},
		{"checks", "read", false, "seeing which checks of a pull request failed"},
		{"statuses", "read", false, "seeing which commit statuses failed"},
		{"actions", "read", false, "telling apart jobs of the same name in different workflows, and receiving events of workflow runs"},
	}
}

// TeamPermission returns the permission that the App needs in an organization if admin.operators lists one of its teams. No App requests it
// from the start.
func TeamPermission() AppPermission {
	return AppPermission{"members", "read", false, "asking who is a member of a team in admin.operators"}
}

// RerunPermission returns the permission that the App needs to run failed jobs of GitHub Actions again. No App requests it from the start:
// without it errand asks a person to do so.
func RerunPermission() AppPermission {
	return AppPermission{"actions", "write", false, "running a failed job of GitHub Actions again, once; without it a comment asks a person to do so"}
}

// Events returns the webhook events to which the App subscribes: its manifest and app.yml are made from this list.
func Events() []string {
	return []string{
		"issues", "issue_comment", "pull_request", "pull_request_review", "pull_request_review_comment", "pull_request_review_thread",
		"push", "check_run", "check_suite", "status", "workflow_run", "sub_issues", "issue_dependencies", "repository",
	}
}

// MissingPermission is a permission that an installation does not grant at the required level.
type MissingPermission struct {
	AppPermission
	Granted string // none, read or write
}

// String returns the permission for people, such as "`contents: write` (granted: `read`)".
func (l MissingPermission) String() string {
	return fmt.Sprintf("`%s: %s` (granted: `%s`)", l.Permission, l.Level, l.Granted)
}

// cachedInstallation is an installation as it was last read.
type cachedInstallation struct {
	Installation
	read time.Time // zero if it must be read again
}

// Installation returns an installation, from the cache if it is recent enough. An installation that lacks a required
// permission is always read again.
func (f *Forge) Installation(ctx context.Context, id int64) (Installation, error) {
	f.mu.Lock()
	known := f.installations[id]
	f.mu.Unlock()
	lacking := slices.ContainsFunc(known.MissingPermissions(), func(l MissingPermission) bool { return l.Required })
	if !known.read.IsZero() && f.client.Now().Sub(known.read) < installationTTL && !lacking {
		return known.Installation, nil
	}
	op, err := f.client.Read(ctx, 0, "read an installation", fmt.Sprint(id))
	if err != nil {
		return Installation{}, err
	}
	got, _, err := op.GitHub.Apps.GetInstallation(op.Ctx, id)
	if err != nil {
		return Installation{}, op.Wrap(err)
	}
	in := installationOf(got)
	f.cacheInstallations(in)
	return in, nil
}

// CachedInstallations returns all installations as they were last read, by account, without a request.
func (f *Forge) CachedInstallations() []Installation {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []Installation
	for _, g := range f.installations {
		list = append(list, g.Installation)
	}
	slices.SortFunc(list, func(a, b Installation) int { return strings.Compare(a.Account.Login, b.Account.Login) })
	return list
}

// replaceInstallations stores a complete list of the installations.
func (f *Forge) replaceInstallations(list []Installation) {
	f.cacheInstallations(list...)
	f.mu.Lock()
	defer f.mu.Unlock()
	for id := range f.installations {
		if !slices.ContainsFunc(list, func(in Installation) bool { return in.ID == id }) {
			delete(f.installations, id)
		}
	}
}

// cacheInstallations stores installations. If the permissions of one have changed, it invalidates all tokens, because
// tokens keep the permissions with which they were created.
func (f *Forge) cacheInstallations(list ...Installation) {
	f.mu.Lock()
	changed := slices.ContainsFunc(list, func(in Installation) bool {
		known, ok := f.installations[in.ID]
		return ok && !maps.Equal(known.Permissions, in.Permissions)
	})
	f.mu.Unlock()
	if changed {
		f.InvalidateTokens()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, in := range list {
		f.installations[in.ID] = cachedInstallation{in, f.client.Now()}
	}
}

// expireInstallations marks every cached installation as outdated. The caller holds the lock.
func (f *Forge) expireInstallations() {
	for id, g := range f.installations {
		g.read = time.Time{}
		f.installations[id] = g
	}
}

func installationOf(in *github.Installation) Installation {
	return Installation{
		ID: in.GetID(), Account: person(in.Account), Suspended: in.SuspendedAt != nil, Permissions: permissionMap(in.Permissions),
		Events: in.Events, URL: in.GetHTMLURL(),
	}
}

// Installations returns the installations of the App.
func (f *Forge) Installations(ctx context.Context) ([]Installation, error) {
	op, err := f.client.Read(ctx, 0, "list installations", "")
	if err != nil {
		return nil, err
	}
	list, err := client.All(func(o github.ListOptions) ([]*github.Installation, *github.Response, error) {
		return op.GitHub.Apps.ListInstallations(op.Ctx, &o)
	})
	if err != nil {
		return nil, op.Wrap(err)
	}
	out := make([]Installation, 0, len(list))
	for _, in := range list {
		out = append(out, installationOf(in))
	}
	f.replaceInstallations(out)
	return out, nil
}

// InstallationRepos returns the repositories of an installation, except archived ones.
func (f *Forge) InstallationRepos(ctx context.Context, installation int64) ([]state.Repo, error) {
	op, err := f.client.Read(ctx, installation, "list repositories", fmt.Sprintf("of installation %d", installation))
	if err != nil {
		return nil, err
	}
	list, err := client.All(func(o github.ListOptions) ([]*github.Repository, *github.Response, error) {
		page, resp, err := op.GitHub.Apps.ListRepos(op.Ctx, &o)
		if err != nil {
			return nil, resp, err
		}
		return page.Repositories, resp, nil
	})
	if err != nil {
		return nil, op.Wrap(err)
	}
	var out []state.Repo
	for _, r := range list {
		if !r.GetArchived() {
			out = append(out, repoOf(r))
		}
	}
	return out, nil
}

// CheckInstalled returns ErrNotFound if no installation of the App includes a repository. A public repository can be
// read nevertheless.
func (f *Forge) CheckInstalled(ctx context.Context, repo int64) error {
	op, err := f.client.Read(ctx, 0, "look for an installation", fmt.Sprintf("of repository %d", repo))
	if err != nil {
		return err
	}
	_, _, err = op.GitHub.Apps.FindRepositoryInstallationByID(op.Ctx, repo)
	return op.Wrap(err)
}

// RepositoryByID returns a repository under its present name, and the installation of the App that includes it. The error is ErrNotFound if
// none does.
func (f *Forge) RepositoryByID(ctx context.Context, id int64) (repo state.Repo, installation int64, err error) {
	op, err := f.client.Read(ctx, 0, "look for an installation", fmt.Sprintf("of repository %d", id))
	if err != nil {
		return state.Repo{}, 0, err
	}
	in, _, err := op.GitHub.Apps.FindRepositoryInstallationByID(op.Ctx, id)
	if err != nil {
		return state.Repo{}, 0, op.Wrap(err)
	}
	op, err = f.client.Read(ctx, in.GetID(), "read a repository", fmt.Sprint(id))
	if err != nil {
		return state.Repo{}, 0, err
	}
	r, _, err := op.GitHub.Repositories.GetByID(op.Ctx, id)
	if err != nil {
		return state.Repo{}, 0, op.Wrap(err)
	}
	return repoOf(r), in.GetID(), nil
}

func permissionMap(p *github.InstallationPermissions) map[string]string {
	out := map[string]string{}
	if raw, err := json.Marshal(p); err == nil {
		_ = json.Unmarshal(raw, &out) // all fields are strings
	}
	return out
}
