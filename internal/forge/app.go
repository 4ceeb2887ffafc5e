package forge

import (
	"context"
	"net/url"

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
}

// Self returns the App. It is read once and then cached.
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
	app := App{
		ID: got.GetID(), Slug: got.GetSlug(), Name: got.GetName(), BotLogin: got.GetSlug() + "[bot]",
		Permissions: permissionMap(got.Permissions), Events: got.Events,
	}
	if app.BotID, err = f.botID(ctx, app.BotLogin); err != nil {
		return App{}, err
	}
	f.mu.Lock()
	f.self = &app
	f.mu.Unlock()
	return app, nil
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
