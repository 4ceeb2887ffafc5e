package simgithub_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// exampleManifest is an App with all that GitHub asks for.
const exampleManifest = `{"name": "Errand of Octo!", "url": "https://example.org", "redirect_url": "http://127.0.0.1:8099/created", "public": false,
"hook_attributes": {"url": "%s", "active": true}, "default_permissions": {"issues": "write"}, "default_events": ["issues"]}`

// TestAppFromManifest creates an App: it replaces the old one, its code gives out the credentials once, and a ping is sent.
func TestAppFromManifest(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	w := newWorld(t, func(c *simgithub.Config) {
		c.AuthNow = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	})
	w.Settled()
	m, err := simgithub.ParseManifest(strings.Replace(exampleManifest, "%s", w.Sim.App().WebhookURL, 1))
	check(t, err)
	first, err := w.Sim.CreateApp("octo", m)
	check(t, err)
	if _, err := w.Sim.CreateApp("octo", m); err == nil {
		t.Error("two Apps have the same name")
	}
	if _, err := w.Sim.CreateApp("nobody", m); err == nil {
		t.Error("an account that does not exist owns an App")
	}
	anyone := w.client(nil)
	got, resp, err := anyone.Apps.CompleteAppManifest(t.Context(), first)
	check(t, err)
	app := w.Sim.App()
	if resp.StatusCode != http.StatusCreated || got.GetID() != app.ID || got.GetSlug() != "errand-of-octo" || got.GetPEM() != string(app.PEM) ||
		got.GetWebhookSecret() != app.WebhookSecret || got.GetClientSecret() == "" || got.GetOwner().GetLogin() != "octo" {
		t.Errorf("status %d, App %v", resp.StatusCode, got)
	}
	if diff := cmp.Diff(map[string]string{"issues": "write", "metadata": "read"}, app.Permissions); diff != "" {
		t.Errorf("permissions (-want +got):\n%s", diff)
	}
	if _, _, err := anyone.Apps.CompleteAppManifest(t.Context(), first); status(err) != http.StatusNotFound {
		t.Errorf("a code was accepted twice: %v", err)
	}
	check(t, w.Sim.WaitHooks(t.Context()))
	list := w.Sim.Deliveries()
	ping := list[len(list)-1]
	var payload struct {
		HookID int64 `json:"hook_id"`
		Hook   struct{ Type string }
	}
	if err := json.Unmarshal(ping.Payload, &payload); err != nil || ping.Event != "ping" || payload.HookID == 0 || payload.Hook.Type != "App" {
		t.Errorf("the last webhook is %s %s (%v)", ping.Event, ping.Payload, err)
	}
	if n := len(w.Sim.Snapshot().Installations); n != 0 {
		t.Errorf("the new App has %d installations", n)
	}
	m.Name = "another"
	second, err := w.Sim.CreateApp("octo", m)
	check(t, err)
	ahead.Store(int64(time.Hour))
	if _, _, err := anyone.Apps.CompleteAppManifest(t.Context(), second); status(err) != http.StatusNotFound {
		t.Errorf("a code was accepted after an hour: %v", err)
	}
}

func TestManifestsThatGitHubRefuses(t *testing.T) {
	t.Parallel()
	good := strings.Replace(exampleManifest, "%s", "https://example.org/hook", 1)
	if _, err := simgithub.ParseManifest(good); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ old, now string }{
		"no JSON": {"{", "x"}, "unknown key": {`"public"`, `"publik"`}, "no name": {"Errand of Octo!", " "}, "long name": {"Errand of Octo!", strings.Repeat("x", 35)},
		"name without letters": {"Errand of Octo!", "!!"}, "no address": {`"url": "https://example.org"`, `"url": ""`}, "no redirect": {"http://127.0.0.1:8099/created", ""},
		"no webhook address": {"https://example.org/hook", "nowhere"}, "unknown event": {`["issues"]`, `["coffee"]`}, "unknown permission": {`{"issues"`, `{"coffee"`},
		"unknown level": {`"issues": "write"`, `"issues": "drink"`},
	} {
		if _, err := simgithub.ParseManifest(strings.Replace(good, c.old, c.now, 1)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
