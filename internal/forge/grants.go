package forge

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/go-github/v66/github"
)

// grantLife is how long an installation's permissions are taken for the present ones, unless a webhook says that they changed.
// GitHub may say nothing when one is taken away; a run of an agent costs more than the call.
const grantLife = 5 * time.Minute

// AppPermission is a permission that errand makes use of.
type AppPermission struct {
	Permission string // as GitHub's API names it
	Level      string // read or write
	Required   bool   // no task can be brought to its end without it
	For        string // what it is for
}

// AppPermissions lists the permissions that app.yml asks for.
func AppPermissions() []AppPermission {
	return []AppPermission{
		{"issues", "write", true, "reading issues and answering in comments"},
		{"pull_requests", "write", true, "opening pull requests and answering reviews"},
		{"contents", "write", true, "reading the repository and publishing commits"},
		{"metadata", "read", true, "finding the repository and asking who may write to it"},
		{"checks", "read", false, "seeing which checks of a pull request failed"},
		{"statuses", "read", false, "seeing which checks of the older kind failed"},
		{"actions", "read", false, "hearing of workflow runs"},
	}
}

// Events lists the webhook events that app.yml subscribes to.
func Events() []string {
	return []string{
		"issues", "issue_comment", "pull_request", "pull_request_review", "pull_request_review_comment", "pull_request_review_thread",
		"push", "check_run", "check_suite", "status", "workflow_run", "sub_issues", "issue_dependencies", "repository",
	}
}

// MissingPermission is a permission that an installation grants less of than errand needs.
type MissingPermission struct {
	AppPermission
	Granted string // none, read or write
}

// String says so in words, such as "`contents: write` (granted: `read`)".
func (l MissingPermission) String() string {
	return fmt.Sprintf("`%s: %s` (granted: `%s`)", l.Permission, l.Level, l.Granted)
}

// MissingPermissions returns what the installation grants too little of.
func (i Installation) MissingPermissions() []MissingPermission {
	levels := []string{"", "read", "write", "admin"}
	var list []MissingPermission
	for _, n := range AppPermissions() {
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

// MissingEvents returns the events that the installation does not send.
func (i Installation) MissingEvents() []string {
	return slices.DeleteFunc(Events(), func(e string) bool { return slices.Contains(i.Events, e) })
}

// grant is what was last read about an installation.
type grant struct {
	Installation
	read time.Time // zero if it may have changed since
}

// Installation returns an installation as it was read within grantLife, and since the last webhook about any. One that
// lacked a required permission is read again.
func (f *Forge) Installation(ctx context.Context, id int64) (Installation, error) {
	f.mu.Lock()
	known := f.grants[id]
	f.mu.Unlock()
	lacking := slices.ContainsFunc(known.MissingPermissions(), func(l MissingPermission) bool { return l.Required })
	if !known.read.IsZero() && f.client.Now().Sub(known.read) < grantLife && !lacking {
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
	f.learn(in)
	return in, nil
}

// CachedInstallations returns what was last read about all installations, by account. It asks GitHub nothing.
func (f *Forge) CachedInstallations() []Installation {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []Installation
	for _, g := range f.grants {
		list = append(list, g.Installation)
	}
	slices.SortFunc(list, func(a, b Installation) int { return strings.Compare(a.Account.Login, b.Account.Login) })
	return list
}

// learnInstallations remembers a whole list.
func (f *Forge) learnInstallations(list []Installation) {
	f.learn(list...)
	f.mu.Lock()
	defer f.mu.Unlock()
	for id := range f.grants {
		if !slices.ContainsFunc(list, func(in Installation) bool { return in.ID == id }) {
			delete(f.grants, id)
		}
	}
}

// learn remembers installations. If the permissions of one have changed, all tokens are made anew: those that there are
// were made with the permissions of before.
func (f *Forge) learn(list ...Installation) {
	f.mu.Lock()
	changed := slices.ContainsFunc(list, func(in Installation) bool {
		known, ok := f.grants[in.ID]
		return ok && !maps.Equal(known.Permissions, in.Permissions)
	})
	f.mu.Unlock()
	if changed {
		f.InvalidateTokens()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, in := range list {
		f.grants[in.ID] = grant{in, f.client.Now()}
	}
}

// forgetGrants has every installation read again before it is relied on. The lock is held.
func (f *Forge) forgetGrants() {
	for id, g := range f.grants {
		g.read = time.Time{}
		f.grants[id] = g
	}
}

func installationOf(in *github.Installation) Installation {
	return Installation{
		ID: in.GetID(), Account: person(in.Account), Suspended: in.SuspendedAt != nil, Permissions: permissionMap(in.Permissions),
		Events: in.Events, URL: in.GetHTMLURL(),
	}
}
