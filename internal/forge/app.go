package forge

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/internal/forge/client"
	"github.com/errand-bot/errand/state"
)

// App is who we are.
type App struct {
	ID       int64
	Slug     string // people mention it as @slug
	Name     string
	BotID    int64  // user id of the account that our comments are by
	BotLogin string // slug[bot]
	// Permissions and Events are what the App's own settings ask for.
	Permissions map[string]string
	Events      []string
}

// Installation is the App on one account.
type Installation struct {
	ID          int64
	Account     state.Person
	Suspended   bool
	Permissions map[string]string // such as issues: write
	Events      []string          // webhooks that it sends
	URL         string            // its settings, where an owner grants permissions
}

// Self returns who we are. The answer is asked for once and then kept.
func (f *Forge) Self(ctx context.Context) (App, error) {
	f.mu.Lock()
	known := f.self
	f.mu.Unlock()
	if known != nil {
		return *known, nil
	}
	op, err := f.client.Read(ctx, 0, "read the App", "")
	if err != nil {
		return App{}, err
	}
	got, _, err := op.GitHub.Apps.Get(op.Ctx, "")
	if err != nil {
		return App{}, op.Wrap(err)
	}
	app := App{ID: got.GetID(), Slug: got.GetSlug(), Name: got.GetName(), BotLogin: got.GetSlug() + "[bot]", Permissions: permissionMap(got.Permissions), Events: got.Events}
	if app.BotID, err = f.botID(ctx, app.BotLogin); err != nil {
		return App{}, err
	}
	f.mu.Lock()
	f.self = &app
	f.mu.Unlock()
	return app, nil
}

// botID looks the bot's account up. The App's own credentials are not accepted for that, so it is
// asked with an installation's, or with none while there is no installation.
func (f *Forge) botID(ctx context.Context, login string) (int64, error) {
	list, err := f.Installations(ctx)
	if err != nil {
		return 0, err
	}
	var installation int64
	for _, in := range list {
		if !in.Suspended {
			installation = in.ID
			break
		}
	}
	op, err := f.client.Read(ctx, installation, "read the bot's account", "")
	if err != nil {
		return 0, err
	}
	if installation == 0 {
		op.GitHub = f.client.Anonymous()
	}
	user, _, err := op.GitHub.Users.Get(op.Ctx, url.PathEscape(login))
	if err != nil {
		return 0, op.Wrap(err)
	}
	return user.GetID(), nil
}

// Installations lists where the App is installed.
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
	f.learnInstallations(out)
	return out, nil
}

func permissionMap(p *github.InstallationPermissions) map[string]string {
	out := map[string]string{}
	if raw, err := json.Marshal(p); err == nil {
		_ = json.Unmarshal(raw, &out) // all its fields are strings
	}
	return out
}

// InstallationRepos lists the repositories that an installation was given, archived ones left out.
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
			out = append(out, repoState(r))
		}
	}
	return out, nil
}

// CheckInstalled reports with ErrNotFound that no installation of the App reaches a repository. A public one can
// be read all the same.
func (f *Forge) CheckInstalled(ctx context.Context, repo int64) error {
	op, err := f.client.Read(ctx, 0, "look for an installation", fmt.Sprintf("of repository %d", repo))
	if err != nil {
		return err
	}
	_, _, err = op.GitHub.Apps.FindRepositoryInstallationByID(op.Ctx, repo)
	return op.Wrap(err)
}

func repoState(r *github.Repository) state.Repo {
	return state.Repo{
		ID: r.GetID(), Owner: r.GetOwner().GetLogin(), Name: r.GetName(), DefaultBranch: r.GetDefaultBranch(),
		Private: r.GetPrivate(), URL: r.GetHTMLURL(),
	}
}

// Delivery is one attempt of GitHub's to deliver a webhook.
type Delivery struct {
	ID           int64
	GUID         string // the same for all attempts
	Event        string
	Action       string
	Installation int64
	At           time.Time
	OK           bool
}

// HookDeliveries returns one page of attempts, newest first, from cursor on (empty: the newest), and
// the next page's cursor, empty at the end.
func (f *Forge) HookDeliveries(ctx context.Context, cursor string) (list []Delivery, next string, err error) {
	op, err := f.client.Read(ctx, 0, "list webhook deliveries", "")
	if err != nil {
		return nil, "", err
	}
	got, resp, err := op.GitHub.Apps.ListHookDeliveries(op.Ctx, &github.ListCursorOptions{PerPage: 100, Cursor: cursor})
	if err != nil {
		return nil, "", op.Wrap(err)
	}
	for _, d := range got {
		list = append(list, Delivery{
			ID: d.GetID(), GUID: d.GetGUID(), Event: d.GetEvent(), Action: d.GetAction(), Installation: d.GetInstallationID(),
			At: d.GetDeliveredAt().Time, OK: d.GetStatus() == "OK",
		})
	}
	return list, resp.Cursor, nil
}

// FailedDeliveries returns, oldest first, one attempt of each webhook since then that no attempt
// has delivered. It reads at most 100 pages.
func (f *Forge) FailedDeliveries(ctx context.Context, since time.Time) ([]Delivery, error) {
	failed := map[string]Delivery{}
	ok := map[string]bool{}
	var order []string
	cursor := ""
	for range client.MaxPages {
		list, next, err := f.HookDeliveries(ctx, cursor)
		if err != nil {
			return nil, err
		}
		for _, d := range list {
			if d.At.Before(since) {
				next = ""
				continue
			}
			ok[d.GUID] = ok[d.GUID] || d.OK
			if _, seen := failed[d.GUID]; !seen {
				failed[d.GUID] = d
				order = append(order, d.GUID)
			}
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	var out []Delivery
	for i := len(order) - 1; i >= 0; i-- {
		if guid := order[i]; !ok[guid] {
			out = append(out, failed[guid])
		}
	}
	return out, nil
}

// HookDelivery returns the webhook that an attempt carried: its event, GUID and JSON payload.
func (f *Forge) HookDelivery(ctx context.Context, id int64) (event, guid string, payload []byte, err error) {
	op, err := f.client.Read(ctx, 0, "read webhook delivery", fmt.Sprint(id))
	if err != nil {
		return "", "", nil, err
	}
	d, _, err := op.GitHub.Apps.GetHookDelivery(op.Ctx, id)
	if err != nil {
		return "", "", nil, op.Wrap(err)
	}
	event = d.GetEvent()
	for name, value := range d.GetRequest().GetHeaders() {
		if strings.EqualFold(name, "X-GitHub-Event") {
			event = value // without the action that the list joins to it
		}
	}
	return event, d.GetGUID(), d.GetRequest().GetRawPayload(), nil
}
