package forge

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/go-github/v66/github"

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
	u, err := f.reads(ctx, 0, "read the App", "")
	if err != nil {
		return App{}, err
	}
	got, _, err := u.client.Apps.Get(u.ctx, "")
	if err != nil {
		return App{}, u.wrap(err)
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
	u, err := f.reads(ctx, installation, "read the bot's account", "")
	if err != nil {
		return 0, err
	}
	if installation == 0 {
		u.client = f.anonymous()
	}
	user, _, err := u.client.Users.Get(u.ctx, url.PathEscape(login))
	if err != nil {
		return 0, u.wrap(err)
	}
	return user.GetID(), nil
}

// anonymous is a client without credentials, over the same transport.
func (f *Forge) anonymous() *github.Client {
	client := github.NewClient(&http.Client{Transport: f.tr})
	client.UserAgent = f.cfg.UserAgent
	if base, err := url.Parse(f.cfg.V3APIURL); err == nil {
		client.BaseURL = base
	}
	return client
}

// Installations lists where the App is installed.
func (f *Forge) Installations(ctx context.Context) ([]Installation, error) {
	u, err := f.reads(ctx, 0, "list installations", "")
	if err != nil {
		return nil, err
	}
	list, err := all(func(o github.ListOptions) ([]*github.Installation, *github.Response, error) {
		return u.client.Apps.ListInstallations(u.ctx, &o)
	})
	if err != nil {
		return nil, u.wrap(err)
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
	u, err := f.reads(ctx, installation, "list repositories", fmt.Sprintf("of installation %d", installation))
	if err != nil {
		return nil, err
	}
	list, err := all(func(o github.ListOptions) ([]*github.Repository, *github.Response, error) {
		page, resp, err := u.client.Apps.ListRepos(u.ctx, &o)
		if err != nil {
			return nil, resp, err
		}
		return page.Repositories, resp, nil
	})
	if err != nil {
		return nil, u.wrap(err)
	}
	var out []state.Repo
	for _, r := range list {
		if !r.GetArchived() {
			out = append(out, repoState(r))
		}
	}
	return out, nil
}

// Installed reports with ErrNotFound that no installation of the App reaches a repository. A public one can
// be read all the same.
func (f *Forge) Installed(ctx context.Context, repo int64) error {
	u, err := f.reads(ctx, 0, "look for an installation", fmt.Sprintf("of repository %d", repo))
	if err != nil {
		return err
	}
	_, _, err = u.client.Apps.FindRepositoryInstallationByID(u.ctx, repo)
	return u.wrap(err)
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
	u, err := f.reads(ctx, 0, "list webhook deliveries", "")
	if err != nil {
		return nil, "", err
	}
	got, resp, err := u.client.Apps.ListHookDeliveries(u.ctx, &github.ListCursorOptions{PerPage: 100, Cursor: cursor})
	if err != nil {
		return nil, "", u.wrap(err)
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
	for range maxPages {
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
	u, err := f.reads(ctx, 0, "read webhook delivery", fmt.Sprint(id))
	if err != nil {
		return "", "", nil, err
	}
	d, _, err := u.client.Apps.GetHookDelivery(u.ctx, id)
	if err != nil {
		return "", "", nil, u.wrap(err)
	}
	event = d.GetEvent()
	for name, value := range d.GetRequest().GetHeaders() {
		if strings.EqualFold(name, "X-GitHub-Event") {
			event = value // without the action that the list joins to it
		}
	}
	return event, d.GetGUID(), d.GetRequest().GetRawPayload(), nil
}
