package handlers

import (
	"context"
	"strings"

	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

func lower(s string) string { return strings.ToLower(s) }

// push maps pushes by people to errand's branches, and pushes to their bases. One to the default branch that may change `.errand.yml`
// pokes tasks that wait for it.
func (m *Mapper) push(ctx context.Context, payload []byte) ([]event.Event, string, error) {
	e, err := decode[github.PushEvent](payload)
	if err != nil {
		return nil, "", err
	}
	branch, ok := strings.CutPrefix(e.GetRef(), "refs/heads/")
	if !ok || e.GetDeleted() {
		return nil, "not a branch, or its deletion", nil
	}
	open, err := m.openTasks(ctx, func(g state.TaskOverview) bool { return g.Key.Repo == e.Repo.GetID() })
	if err != nil {
		return nil, "", err
	}
	var events []event.Event
	for _, g := range open {
		switch {
		case g.Branch == branch && g.Head != "" && !m.isOwn(e.Sender):
			events = append(events, event.Event{Task: g.Key, By: person(e.Sender), Payload: event.Pushed{Head: e.GetAfter()}})
		case g.Base == branch && (g.HasPR || g.Phase == state.PhaseImplementing):
			events = append(events, event.Event{Task: g.Key, Payload: event.BaseMoved{}})
		}
		if branch == e.Repo.GetDefaultBranch() && (g.Waiting == state.WaitConfig || g.Waiting == state.WaitDisabled) && touchesConfig(e) {
			events = append(events, event.Event{Task: g.Key, Payload: event.ConditionChanged{}})
		}
	}
	return events, "no task on this branch, or errand's own push", nil
}

// touchesConfig reports whether a push may have changed `.errand.yml`. GitHub lists the files of the newest commits
// only, so it returns true for every large push.
func touchesConfig(e *github.PushEvent) bool {
	if len(e.Commits) >= 20 {
		return true
	}
	for _, c := range e.Commits {
		if c == nil {
			continue
		}
		for _, list := range [][]string{c.Added, c.Modified, c.Removed} {
			for _, path := range list {
				if path == ".errand.yml" {
					return true
				}
			}
		}
	}
	return false
}

// checkPayload has the common fields of check_run and check_suite events.
type checkPayload struct {
	Action     string             `json:"action"`
	Repository *github.Repository `json:"repository"`
	CheckRun   *github.CheckRun   `json:"check_run"`
	CheckSuite *github.CheckSuite `json:"check_suite"`
}

// check maps a change of the checks on the head of one of errand's branches.
func (m *Mapper) check(ctx context.Context, payload []byte) ([]event.Event, string, error) {
	e, err := decode[checkPayload](payload)
	if err != nil {
		return nil, "", err
	}
	switch {
	case e.CheckSuite != nil && e.Action == "completed":
		return m.checks(ctx, e.Repository, e.CheckSuite.GetHeadSHA())
	case e.CheckRun != nil && (e.Action == "created" || e.Action == "completed"): // a success, too: it can be the last required one
		return m.checks(ctx, e.Repository, e.CheckRun.GetHeadSHA())
	}
	return nil, "errand ignores the action " + e.Action, nil
}

// status maps a commit status.
func (m *Mapper) status(ctx context.Context, payload []byte) ([]event.Event, string, error) {
	e, err := decode[github.StatusEvent](payload)
	if err != nil {
		return nil, "", err
	}
	return m.checks(ctx, e.Repo, e.GetSHA())
}

// checks returns the event for the task whose branch is at the commit.
func (m *Mapper) checks(ctx context.Context, r *github.Repository, sha string) ([]event.Event, string, error) {
	open, err := m.openTasks(ctx, func(g state.TaskOverview) bool { return g.Key.Repo == r.GetID() && g.HasPR && g.Head == sha })
	if err != nil {
		return nil, "", err
	}
	if len(open) == 0 {
		return nil, "not the head of one of errand's branches", nil
	}
	return []event.Event{{Task: open[0].Key, Payload: event.ChecksChanged{}}}, "", nil
}

// repository maps a rename, a transfer, a change of the visibility, or a deletion. Tasks are keyed by the repository's ID, so they survive a new
// name.
func (m *Mapper) repository(ctx context.Context, payload []byte) ([]event.Event, string, error) {
	e, err := decode[github.RepositoryEvent](payload)
	if err != nil {
		return nil, "", err
	}
	ev := event.Event{Repo: repoOf(e.Repo), Installation: e.Installation.GetID()}
	switch e.GetAction() {
	case "renamed", "transferred", "edited", "publicized", "privatized":
		if e.Repo.GetName() == "" || e.Repo.GetOwner().GetLogin() == "" {
			return nil, "", errIncomplete
		}
		ev.Payload = event.Renamed{}
	case "deleted":
		ev.Payload = event.AccessLost{Lost: "the repository was deleted"}
	default:
		return nil, "errand ignores the action " + e.GetAction(), nil
	}
	return m.eventsForRepository(ctx, e.Repo.GetID(), ev)
}

// eventsForRepository returns an event for every open task of a repository.
func (m *Mapper) eventsForRepository(ctx context.Context, repo int64, ev event.Event) ([]event.Event, string, error) {
	open, err := m.openTasks(ctx, func(g state.TaskOverview) bool { return g.Key.Repo == repo })
	return eventsFor(open, ev), "no task there", err
}

// installation maps the loss and the return of access.
func (m *Mapper) installation(ctx context.Context, payload []byte) ([]event.Event, string, error) {
	e, err := decode[github.InstallationEvent](payload)
	if err != nil {
		return nil, "", err
	}
	id, ev := e.Installation.GetID(), event.Event{}
	switch a := e.GetAction(); a {
	case "deleted":
		ev.Payload = event.AccessLost{Lost: "the App was uninstalled"}
	case "suspend":
		ev.Payload = event.AccessLost{Lost: "the App was suspended"}
	case "created":
		return m.repositoriesAccessible(ctx, id, e.Repositories)
	case "new_permissions_accepted":
		return m.permissionsGranted(ctx, id)
	case "unsuspend":
		return m.installationUnsuspended(ctx, id)
	default:
		return nil, "errand ignores the action " + a, nil
	}
	open, err := m.openTasks(ctx, func(g state.TaskOverview) bool { return g.Installation == id })
	return eventsFor(open, ev), "no task there", err
}

// installationUnsuspended maps an installation that is no longer suspended.
func (m *Mapper) installationUnsuspended(ctx context.Context, id int64) ([]event.Event, string, error) {
	gone, err := m.tasks.OutOfReach(ctx)
	if err != nil {
		return nil, "", err
	}
	var events []event.Event
	for _, t := range gone {
		if t.Installation == id {
			events = append(events, event.Event{Task: t.Key, Installation: id, Payload: event.AccessRegained{}})
		}
	}
	return events, "no task there", nil
}

// permissionsGranted pokes the tasks of an installation that wait for a permission.
func (m *Mapper) permissionsGranted(ctx context.Context, installation int64) ([]event.Event, string, error) {
	waiting, err := m.openTasks(ctx, func(g state.TaskOverview) bool {
		return g.Installation == installation && g.Waiting == state.WaitPermission
	})
	return eventsFor(waiting, event.Event{Payload: event.ConditionChanged{}}), "no task waits for a permission", err
}

// repositoriesAccessible maps repositories that the App can access, possibly again, to events for the tasks that ended there for lack of
// access.
func (m *Mapper) repositoriesAccessible(ctx context.Context, installation int64, repos []*github.Repository) ([]event.Event, string, error) {
	gone, err := m.tasks.OutOfReach(ctx)
	if err != nil {
		return nil, "", err
	}
	var events []event.Event
	for _, t := range gone {
		for _, r := range repos {
			if r.GetID() == t.Key.Repo {
				events = append(events, event.Event{Task: t.Key, Installation: installation, Payload: event.AccessRegained{}})
			}
		}
	}
	return events, "no task ended there", nil
}

// installationRepositories maps repositories that were removed from the App or added to it.
func (m *Mapper) installationRepositories(ctx context.Context, payload []byte) ([]event.Event, string, error) {
	e, err := decode[github.InstallationRepositoriesEvent](payload)
	if err != nil {
		return nil, "", err
	}
	if len(e.RepositoriesRemoved) == 0 {
		return m.repositoriesAccessible(ctx, e.Installation.GetID(), e.RepositoriesAdded)
	}
	var events []event.Event
	for _, r := range e.RepositoriesRemoved {
		more, _, err := m.eventsForRepository(ctx, r.GetID(), event.Event{Payload: event.AccessLost{Lost: "the repository was taken from the App"}})
		if err != nil {
			return nil, "", err
		}
		events = append(events, more...)
	}
	return events, "no repository with a task was removed", nil
}
