package forge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/state"
)

// App is errand's GitHub App.
type App struct {
	ID       int64
	Slug     string // mentioned as @slug
	Name     string
	BotID    int64  // user ID of the author of the App's comments
	BotLogin string // slug[bot]
	// Permissions and Events are those in the settings of the App.
	Permissions map[string]string
	Events      []string
	SettingsURL string // only the App's owner can open it
	ClientID    string // for sign-ins; empty if GitHub does not name it
}

// Self returns the App. It is read once and then cached.
func (f *Forge) Self(ctx context.Context) (App, error) {
	f.mu.Lock()
	known := f.self
	f.mu.Unlock()
	if known != nil {
		return *known, nil
	}
	app, err := f.ReadApp(ctx)
	if err != nil {
		return App{}, err
	}
	if app.BotID, err = f.botID(ctx, app.BotLogin); err != nil {
		return App{}, err
	}
	f.mu.Lock()
	f.self = &app
	f.mu.Unlock()
	return app, nil
}

// ReadApp reads the App as it is now, without its BotID.
func (f *Forge) ReadApp(ctx context.Context) (App, error) {
	op, err := f.client.Read(ctx, 0, "read the App", "")
	if err != nil {
		return App{}, err
	}
	req, err := op.GitHub.NewRequest(http.MethodGet, "app", nil)
	if err != nil {
		return App{}, op.Wrap(err)
	}
	got := &struct {
		github.App
		ClientID string `json:"client_id"`
	}{}
	if _, err := op.GitHub.Do(op.Ctx, req, got); err != nil {
		return App{}, op.Wrap(err)
	}
	return App{
		ID: got.GetID(), Slug: got.GetSlug(), Name: got.GetName(), BotLogin: got.GetSlug() + "[bot]",
		Permissions: permissionMap(got.Permissions), Events: got.Events, SettingsURL: f.appSettings(&got.App), ClientID: got.ClientID,
	}, nil
}

// appSettings returns the page with the settings of an App, which only its owner can open.
func (f *Forge) appSettings(app *github.App) string {
	path := "settings/apps/" + url.PathEscape(app.GetSlug())
	if owner := app.GetOwner(); owner.GetType() == "Organization" {
		path = "organizations/" + url.PathEscape(owner.GetLogin()) + "/" + path
	}
	return strings.TrimSuffix(f.client.Config().WebURL, "/") + "/" + path
}

// ClockSkew returns by how much this host's clock is ahead of GitHub's, to the second. It needs no credentials.
func (f *Forge) ClockSkew(ctx context.Context) (time.Duration, error) {
	op, err := f.client.Read(ctx, 0, "read GitHub's clock", "")
	if err != nil {
		return 0, err
	}
	_, resp, err := f.client.Anonymous().RateLimit.Get(op.Ctx)
	if resp == nil {
		return 0, op.Wrap(err)
	}
	at, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		return 0, fmt.Errorf("read GitHub's clock: %w", err)
	}
	return f.client.Now().Sub(at).Truncate(time.Second), nil
}

// LatestRelease returns the tag of the latest release of a public repository on github.com, or "" if it has none. It needs no
// credentials.
func (f *Forge) LatestRelease(ctx context.Context, owner, name string) (string, error) {
	op, err := f.client.Read(ctx, 0, "read the latest release", owner+"/"+name)
	if err != nil {
		return "", err
	}
	got, _, err := f.client.Anonymous().Repositories.GetLatestRelease(op.Ctx, owner, name)
	if err = op.Wrap(err); errors.Is(err, ErrNotFound) {
		return "", nil
	}
	return got.GetTagName(), err
}

// Rate is the use of an hourly limit of GitHub.
type Rate struct {
	Limit, Remaining int
	Reset            time.Time
}

// RateLeft returns the use of the REST limit of an installation. Reading it counts as no request.
func (f *Forge) RateLeft(ctx context.Context, installation int64) (Rate, error) {
	op, err := f.client.Read(ctx, installation, "read the rate limit", "")
	if err != nil {
		return Rate{}, err
	}
	got, _, err := op.GitHub.RateLimit.Get(op.Ctx)
	if err != nil {
		return Rate{}, op.Wrap(err)
	}
	core := got.GetCore()
	if core == nil { // GitHub Enterprise Server can have no limits
		return Rate{}, nil
	}
	return Rate{Limit: core.Limit, Remaining: core.Remaining, Reset: core.Reset.Time}, nil
}

// botID reads the ID of the bot's account. GitHub does not accept the App's credentials for that, so botID uses those
// of an installation, or none if there is no installation.
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

func repoOf(r *github.Repository) state.Repo {
	return state.Repo{
		ID: r.GetID(), Owner: r.GetOwner().GetLogin(), Name: r.GetName(), DefaultBranch: r.GetDefaultBranch(),
		Private: r.GetPrivate(), URL: r.GetHTMLURL(),
	}
}
