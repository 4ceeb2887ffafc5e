package forge

import (
	"context"
	"net/url"

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

func repoOf(r *github.Repository) state.Repo {
	return state.Repo{
		ID: r.GetID(), Owner: r.GetOwner().GetLogin(), Name: r.GetName(), DefaultBranch: r.GetDefaultBranch(),
		Private: r.GetPrivate(), URL: r.GetHTMLURL(),
	}
}
