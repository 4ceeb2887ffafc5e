package forge_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/state"
)

func TestSelfIsAskedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app := w.App()
	want := forge.App{ID: app.ID, Slug: "errand", Name: "errand", BotID: app.BotID, BotLogin: "errand[bot]", Permissions: app.Permissions, Events: app.Events}
	for range 2 {
		if diff := cmp.Diff(want, must(w.f.Self(t.Context()))(t)); diff != "" {
			t.Error(diff)
		}
	}
	before := w.f.Calls(forge.ForTask)
	must(w.f.Self(t.Context()))(t)
	if w.f.Calls(forge.ForTask) != before {
		t.Error("asked again")
	}
}

func TestSelfWithoutInstallations(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Uninstall("octo")
	if self := must(w.f.Self(t.Context()))(t); self.BotID != w.App().BotID {
		t.Errorf("got %+v", self)
	}
}

func TestInstallations(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	list := must(w.f.Installations(t.Context()))(t)
	if len(list) != 1 || list[0].ID != w.repo.Installation || list[0].Account.Login != "octo" || list[0].Permissions["issues"] != "write" {
		t.Errorf("got %+v", list)
	}
	repos := must(w.f.InstallationRepos(t.Context(), w.repo.Installation))(t)
	if len(repos) != 1 || repos[0].ID != w.repo.ID || repos[0].FullName() != fullName || repos[0].DefaultBranch != "main" {
		t.Errorf("got %+v", repos)
	}
	w.Suspend("octo", true)
	if list := must(w.f.Installations(t.Context()))(t); !list[0].Suspended {
		t.Error("not suspended")
	}
}

func TestFailedDeliveries(t *testing.T) {
	t.Parallel()
	w := newWorld(t) // without a webhook address, every delivery fails
	w.issue(t, "one")
	w.issue(t, "two")
	var list []forge.Delivery
	poll(t, "two failed deliveries of issues", func() bool {
		list = nil
		for _, d := range must(w.f.FailedDeliveries(t.Context(), time.Now().Add(-time.Hour)))(t) {
			if d.Event == "issues" {
				list = append(list, d)
			}
		}
		return len(list) == 2
	})
	event, guid, payload, err := w.f.HookDelivery(t.Context(), list[0].ID)
	if err != nil || event != "issues" || guid != list[0].GUID || !cmp.Equal(issueOf(t, payload), "one") {
		t.Errorf("got %s %s %s, %v", event, guid, payload, err)
	}
	if later := must(w.f.FailedDeliveries(t.Context(), time.Now().Add(time.Hour)))(t); len(later) != 0 {
		t.Errorf("got %d from the future", len(later))
	}
}

func TestFailedDeliveriesOfAllPages(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 13, 0, 0, 0, time.UTC)
	entry := func(id int, guid, status string, age time.Duration) m {
		return m{"id": id, "guid": guid, "status": status, "event": "issues", "delivered_at": now.Add(-age)}
	}
	gh := newFake(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("cursor") == "" {
			w.Header().Set("Link", "<"+"http://"+r.Host+r.URL.Path+`?per_page=100&cursor=v1_2>; rel="next"`)
			answer(w, 200, []m{entry(9, "redelivered", "OK", 0), entry(8, "b", "timed out", time.Minute), entry(7, "b", "Service Timeout", 2*time.Minute)})
			return
		}
		answer(w, 200, []m{entry(3, "redelivered", "failed to connect", time.Hour), entry(2, "a", "Invalid HTTP Response: 500", time.Hour), entry(1, "old", "timed out", 5*time.Hour)})
	})
	list := must(newForge(t, gh.URL).FailedDeliveries(t.Context(), now.Add(-2*time.Hour)))(t)
	var got []string
	for _, d := range list {
		got = append(got, fmt.Sprint(d.GUID, d.ID))
	}
	if diff := cmp.Diff([]string{"a2", "b8"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestPermission(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := func(login string) int64 { return w.AddUser(login).ID }
	tests := map[string]struct {
		login string
		id    int64
		want  state.Permission
	}{
		"owner":            {"octo", id("octo"), state.PermissionAdmin},
		"maintain":         {"mia", id("mia"), state.PermissionWrite},
		"write":            {"wendy", id("wendy"), state.PermissionWrite},
		"triage":           {"tom", id("tom"), state.PermissionRead},
		"read":             {"rita", id("rita"), state.PermissionRead},
		"stranger":         {"sam", id("sam"), state.PermissionRead}, // it is public
		"reused login":     {"wendy", id("wendy") + 1, state.PermissionNone},
		"another bot":      {"other[bot]", w.AddBot("other[bot]").ID, state.PermissionNone},
		"ourselves":        {"errand[bot]", w.App().BotID, state.PermissionNone},
		"nobody":           {"nobody", 5, state.PermissionNone},
		"not a login":      {"../../rita", id("rita"), state.PermissionNone},
		"empty":            {"", 0, state.PermissionNone},
		"login with query": {"wendy?x=", id("wendy"), state.PermissionNone},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := must(w.f.Permission(t.Context(), w.repo, tt.login, tt.id))(t); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestPermissionIsNeverCached(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.AddUser("wendy").ID
	must(w.f.Permission(t.Context(), w.repo, "wendy", id))(t)
	if err := w.As("octo").SetPermission(fullName, "wendy", simgithub.RoleRead); err != nil {
		t.Fatal(err)
	}
	if got := must(w.f.Permission(t.Context(), w.repo, "wendy", id))(t); got != state.PermissionRead {
		t.Errorf("got %s", got)
	}
}

func TestGitToken(t *testing.T) {
	t.Parallel()
	now := time.Now()
	w := newWorld(t, func(c *forge.Config) { c.Now = func() time.Time { return now } })
	get := func() (string, time.Time) {
		t.Helper()
		token, expires, err := w.f.GitToken(t.Context(), w.repo)
		if err != nil {
			t.Fatal(err)
		}
		return token, expires
	}
	first, expires := get()
	if again, _ := get(); again != first {
		t.Error("a new token for each call")
	}
	now = expires.Add(-5 * time.Minute)
	second, _ := get()
	if second == first {
		t.Error("a token that is about to end was given out")
	}
	now = time.Now()
	for range 2 { // the second time it has ended already
		if err := w.f.Revoke(t.Context(), second); err != nil {
			t.Error(err)
		}
	}
	if third, _ := get(); third == second {
		t.Error("a revoked token was given out")
	}
}

func TestUninstalled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Uninstall("octo")
	_, err := w.f.CreateComment(t.Context(), w.repo, 1, "hello")
	if !errors.Is(err, forge.ErrNotInstalled) {
		t.Errorf("got %v", err)
	}
}

func TestExpiredTokensAreReplaced(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.issue(t, "A bug").Number
	must(w.f.Issue(t.Context(), w.repo, n))(t)
	w.ExpireTokens() // as when an installation was suspended for a while
	_, err := w.f.Issue(t.Context(), w.repo, n)
	if class, _ := forge.Classify(err); err == nil || class != forge.ClassTemporary {
		t.Errorf("class %s: %v", class, err)
	}
	must(w.f.Issue(t.Context(), w.repo, n))(t)
	w.ExpireTokens() // and again at once: it may take a moment, but is nothing permanent
	poll(t, "renewed token", func() bool {
		_, err := w.f.Issue(t.Context(), w.repo, n)
		if class, _ := forge.Classify(err); err != nil && class != forge.ClassTemporary {
			t.Fatalf("class %s: %v", class, err)
		}
		return err == nil
	})
}

// poll waits until ok, for a minute.
func poll(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatalf("no %s in time", what)
		case <-tick.C:
		}
	}
}
