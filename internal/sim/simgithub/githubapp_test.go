package simgithub_test

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/palantir/go-githubapp/githubapp"

	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// listener is an event handler of go-githubapp that records the events.
type listener struct{ got chan string }

func (l listener) Handles() []string { return []string{"issues", "issue_comment"} }

func (l listener) Handle(_ context.Context, event, delivery string, _ []byte) error {
	if delivery != "" {
		l.got <- event
	}
	return nil
}

func TestGoGitHubAppHandlesItsWebhooks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Settled()
	l := listener{make(chan string, 10)}
	hooks := httptest.NewServer(githubapp.NewEventDispatcher([]githubapp.EventHandler{l}, "s3cret"))
	t.Cleanup(hooks.Close)
	w.Sim.SetWebhook(hooks.URL+"/api/github/hook", "")
	i := w.Issue("One")
	check(t, second(w.Owner.Comment(repo, i.Number, "hi")))
	check(t, w.Sim.WaitHooks(t.Context()))
	if diff := cmp.Diff([]string{"issues", "issue_comment"}, []string{<-l.got, <-l.got}); diff != "" {
		t.Errorf("handled (-want +got):\n%s", diff)
	}
	var cfg githubapp.Config
	a := w.Sim.App()
	cfg.WebURL, cfg.V3APIURL, cfg.V4APIURL = w.URL, w.URL+"/api/v3", w.URL+"/api/graphql"
	cfg.App.IntegrationID, cfg.App.PrivateKey, cfg.App.WebhookSecret = a.ID, string(a.PEM), a.WebhookSecret
	creator, err := githubapp.NewDefaultCachingClientCreator(cfg)
	check(t, err)
	app, err := creator.NewAppClient()
	check(t, err)
	in, err := githubapp.NewInstallationsService(app).GetByRepository(t.Context(), "octo", "calc")
	check(t, err)
	bot, err := creator.NewInstallationClient(in.ID)
	check(t, err)
	got, _, err := bot.Issues.Get(t.Context(), "octo", "calc", i.Number)
	check(t, err)
	if got.GetTitle() != "One" {
		t.Errorf("got issue %v", got)
	}
}

func TestDeliveriesThatFail(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *simgithub.Config) { c.HookTimeout = 300 * time.Millisecond })
	w.Settled()
	release := make(chan struct{})
	slow := httptest.NewServer(slowHandler(release))
	t.Cleanup(slow.Close)
	t.Cleanup(func() { close(release) })
	for name, c := range map[string]struct{ url, want string }{
		"slow": {slow.URL, "timed out"}, "no server": {"http://127.0.0.1:1/", "failed to connect to host"},
		"no address": {"", "failed to connect to host"},
	} {
		w.Sim.SetWebhook(c.url, "")
		w.Issue(name)
		check(t, w.Sim.WaitHooks(t.Context()))
		list := w.Sim.Deliveries()
		if last := list[len(list)-1]; last.Status != c.want || last.StatusCode != 0 {
			t.Errorf("%s: got %q, %d; want %q", name, last.Status, last.StatusCode, c.want)
		}
	}
}
