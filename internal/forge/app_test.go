package forge_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/forge/forgetest"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/state"
)

func TestSelfIsCached(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	app := w.App()
	want := forge.App{ID: app.ID, Slug: "errand", Name: "errand", BotID: app.BotID, BotLogin: "errand[bot]", Permissions: app.Permissions, Events: app.Events,
		SettingsURL: w.BaseURL() + "/organizations/app-owner/settings/apps/errand", ClientID: w.App().ClientID}
	for range 2 {
		if diff := cmp.Diff(want, forgetest.Must(w.Forge.Self(t.Context()))(t)); diff != "" {
			t.Error(diff)
		}
	}
	before := w.Forge.Calls(forge.ForTask)
	forgetest.Must(w.Forge.Self(t.Context()))(t)
	if w.Forge.Calls(forge.ForTask) != before {
		t.Error("Self sent another request")
	}
}

func TestSelfWithoutInstallations(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	w.Uninstall("octo")
	if self := forgetest.Must(w.Forge.Self(t.Context()))(t); self.BotID != w.App().BotID {
		t.Errorf("got %+v", self)
	}
}

func TestInstallations(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	list := forgetest.Must(w.Forge.Installations(t.Context()))(t)
	if len(list) != 1 || list[0].ID != w.Repo.Installation || list[0].Account.Login != "octo" || list[0].Permissions["issues"] != "write" {
		t.Errorf("got %+v", list)
	}
	repos := forgetest.Must(w.Forge.InstallationRepos(t.Context(), w.Repo.Installation))(t)
	if len(repos) != 1 || repos[0].ID != w.Repo.ID || repos[0].FullName() != forgetest.FullName || repos[0].DefaultBranch != "main" {
		t.Errorf("got %+v", repos)
	}
	w.Suspend("octo", true)
	if list := forgetest.Must(w.Forge.Installations(t.Context()))(t); !list[0].Suspended {
		t.Error("the installation is not suspended")
	}
}

func TestDeliveries(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t) // without a webhook address, every delivery fails
	w.OpenIssue(t, "one")
	w.OpenIssue(t, "two")
	var list []forge.Delivery
	forgetest.Poll(t, "two failed deliveries of issues", func() bool {
		list = nil
		for _, d := range forgetest.Must(w.Forge.Deliveries(t.Context(), time.Now().Add(-time.Hour)))(t) {
			if d.Event == "issues" && !d.OK {
				list = append(list, d)
			}
		}
		return len(list) == 2
	})
	event, guid, payload, err := w.Forge.HookDelivery(t.Context(), list[0].ID)
	if err != nil || event != "issues" || guid != list[0].GUID || !cmp.Equal(issueOf(t, payload), "one") {
		t.Errorf("got %s %s %s, %v", event, guid, payload, err)
	}
	if later := forgetest.Must(w.Forge.Deliveries(t.Context(), time.Now().Add(time.Hour)))(t); len(later) != 0 {
		t.Errorf("got %d from the future", len(later))
	}
}

func TestDeliveriesOnSeveralPages(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 13, 0, 0, 0, time.UTC)
	entry := func(id int, guid, status string, age time.Duration) m {
		return m{"id": id, "guid": guid, "status": status, "event": "issues", "delivered_at": now.Add(-age)}
	}
	gh := forgetest.NewFake(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("cursor") == "" {
			w.Header().Set("Link", "<"+"http://"+r.Host+r.URL.Path+`?per_page=100&cursor=v1_2>; rel="next"`)
			forgetest.Answer(w, 200, []m{entry(9, "redelivered", "OK", 0), entry(8, "b", "timed out", time.Minute), entry(7, "b", "Service Timeout", 2*time.Minute)})
			return
		}
		forgetest.Answer(w, 200, []m{entry(3, "redelivered", "failed to connect", time.Hour), entry(2, "a", "Invalid HTTP Response: 500", time.Hour), entry(1, "old", "timed out", 5*time.Hour)})
	})
	list := forgetest.Must(forgetest.New(t, gh.URL).Deliveries(t.Context(), now.Add(-2*time.Hour)))(t)
	var got []string
	for _, d := range list {
		got = append(got, fmt.Sprint(d.GUID, d.ID, d.OK))
	}
	if diff := cmp.Diff([]string{"a2 false", "b8 false", "redelivered9 true"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestPermission(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
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
		"stranger":         {"sam", id("sam"), state.PermissionRead}, // the repository is public
		"reused login":     {"wendy", id("wendy") + 1, state.PermissionNone},
		"another bot":      {"other[bot]", w.AddBot("other[bot]").ID, state.PermissionNone},
		"own bot":          {"errand[bot]", w.App().BotID, state.PermissionNone},
		"nobody":           {"nobody", 5, state.PermissionNone},
		"not a login":      {"../../rita", id("rita"), state.PermissionNone},
		"empty":            {"", 0, state.PermissionNone},
		"login with query": {"wendy?x=", id("wendy"), state.PermissionNone},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := forgetest.Must(w.Forge.Permission(t.Context(), w.Repo, tt.login, tt.id))(t); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestIdentity(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	of := func(login, name string) state.Person {
		id := w.AddUser(login).ID
		if err := w.As(login).SetName(name); err != nil {
			t.Fatal(err)
		}
		return state.Person{ID: id, Login: login}
	}
	wendy := of("wendy", "Wendy Darling")
	for name, tt := range map[string]struct {
		person      state.Person
		name, login string
	}{
		"a name":            {wendy, "Wendy Darling", "wendy"},
		"no name":           {of("mia", ""), "mia", "mia"},
		"renamed":           {state.Person{ID: wendy.ID, Login: "old"}, "Wendy Darling", "wendy"},
		"a deleted account": {state.Person{ID: 987654321, Login: "gone"}, "gone", "gone"},
		"no account":        {state.Person{Login: "rita"}, "", ""},
		"not a login":       {state.Person{ID: 987654321, Login: "x>\ny"}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, email, err := w.Forge.Identity(t.Context(), w.Repo, tt.person)
			want := ""
			if tt.login != "" {
				want = fmt.Sprintf("%d+%s@users.noreply.127.0.0.1", tt.person.ID, tt.login)
			}
			if err != nil || got != tt.name || email != want {
				t.Errorf("got %q <%s>, %v; want %q <%s>", got, email, err, tt.name, want)
			}
		})
	}
}

func TestPermissionIsNeverCached(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	id := w.AddUser("wendy").ID
	forgetest.Must(w.Forge.Permission(t.Context(), w.Repo, "wendy", id))(t)
	if err := w.As("octo").SetPermission(forgetest.FullName, "wendy", simgithub.RoleRead); err != nil {
		t.Fatal(err)
	}
	if got := forgetest.Must(w.Forge.Permission(t.Context(), w.Repo, "wendy", id))(t); got != state.PermissionRead {
		t.Errorf("got %s", got)
	}
}
