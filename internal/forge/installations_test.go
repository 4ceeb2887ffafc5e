package forge_test

import (
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/forge/forgetest"
)

// TestPermissionsAndEventsMatchManifest compares the permissions and events in the code, app.yml and docs/install.md.
func TestPermissionsAndEventsMatchManifest(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../app.yml")
	if err != nil {
		t.Fatal(err)
	}
	var manifest struct {
		Permissions map[string]string `yaml:"default_permissions"`
		Events      []string          `yaml:"default_events"`
	}
	if err := yaml.Unmarshal(raw, &manifest); err != nil {
		t.Fatal(err)
	}
	manual, err := os.ReadFile("../../docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	needs := map[string]string{}
	for _, n := range forge.AppPermissions() {
		needs[n.Permission] = n.Level
		required := map[bool]string{true: "required", false: "optional"}[n.Required]
		if row := "| `" + n.Permission + ": " + n.Level + "` | " + required + " | " + n.For; !strings.Contains(string(manual), row) {
			t.Errorf("docs/install.md has no row %q", row)
		}
	}
	team := forge.TeamPermission()
	if row := "| `" + team.Permission + ": " + team.Level + "` | only with "; !strings.Contains(string(manual), row) || !strings.Contains(string(manual), " | "+team.For+" |") {
		t.Errorf("docs/install.md has no row %q", row)
	}
	if !strings.Contains(string(raw), "admin.operators lists teams") || !strings.Contains(string(raw), team.Permission+": "+team.Level) {
		t.Error("app.yml does not mention the permission for teams")
	}
	again := forge.RerunPermission()
	if row := "| `" + again.Permission + ": " + again.Level + "` | optional, not requested | " + again.For + " |"; !strings.Contains(string(manual), row) {
		t.Errorf("docs/install.md has no row %q", row)
	}
	if !strings.Contains(string(raw), "# Only if errand is to run failed jobs of GitHub Actions again") || needs[again.Permission] == again.Level {
		t.Error("app.yml does not mention the permission for re-runs as an optional one")
	}
	if diff := cmp.Diff(manifest.Permissions, needs); diff != "" {
		t.Errorf("permissions (-app.yml +code):\n%s", diff)
	}
	if diff := cmp.Diff(manifest.Events, forge.Events()); diff != "" {
		t.Errorf("events (-app.yml +code):\n%s", diff)
	}
}

func TestMissingPermissions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change map[string]string
		want   []string
	}{
		"all granted":           {nil, nil},
		"more than required":    {map[string]string{"issues": "admin", "checks": "write", "workflows": "write"}, nil},
		"read instead of write": {map[string]string{"contents": "read"}, []string{"`contents: write` (granted: `read`) required"}},
		"not granted at all":    {map[string]string{"pull_requests": ""}, []string{"`pull_requests: write` (granted: `none`) required"}},
		"optional":              {map[string]string{"checks": ""}, []string{"`checks: read` (granted: `none`)"}},
		"unknown level":         {map[string]string{"statuses": "maybe"}, []string{"`statuses: read` (granted: `maybe`)"}},
		"several":               {map[string]string{"issues": "read", "actions": ""}, []string{"`issues: write` (granted: `read`) required", "`actions: read` (granted: `none`)"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := forge.Installation{Permissions: map[string]string{}}
			for _, n := range forge.AppPermissions() {
				in.Permissions[n.Permission] = n.Level
			}
			for p, level := range c.change {
				in.Permissions[p] = level
			}
			var got []string
			for _, l := range in.MissingPermissions() {
				text := l.String()
				if l.Required {
					text += " required"
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMissingEvents(t *testing.T) {
	t.Parallel()
	if got := (forge.Installation{Events: append(forge.Events(), "star")}).MissingEvents(forge.Events()); len(got) > 0 {
		t.Errorf("missing events %v, want none", got)
	}
	if diff := cmp.Diff([]string{"issues"}, (forge.Installation{Events: forge.Events()[1:]}).MissingEvents(forge.Events())); diff != "" {
		t.Error(diff)
	}
}

// TestInstallationIsCached checks that an installation is read every five minutes, after changes, and while a
// permission is missing.
func TestInstallationIsCached(t *testing.T) {
	t.Parallel()
	var late atomic.Int64 // a time.Duration
	w := forgetest.NewWorld(t, func(c *forge.Config) { c.Now = func() time.Time { return time.Now().Add(time.Duration(late.Load())) } })
	forgetest.Must(w.Forge.Self(t.Context()))(t)
	id := w.Forge.CachedInstallations()[0].ID
	reads := func() int {
		before := w.Forge.Calls(forge.ForTask)
		forgetest.Must(w.Forge.Installation(t.Context(), id))(t)
		return w.Forge.Calls(forge.ForTask) - before
	}
	if n := reads(); n != 0 {
		t.Errorf("read %d times although the list included it", n)
	}
	w.Forge.InvalidateTokens() // as after a webhook about a change
	if n := reads(); n != 1 {
		t.Errorf("read %d times after a change", n)
	}
	if n := reads(); n != 0 {
		t.Errorf("read %d times without a change", n)
	}
	late.Store(int64(6 * time.Minute)) // without a webhook
	if n := reads(); n != 1 {
		t.Errorf("read %d times after six minutes", n)
	}
	perms := w.App().Permissions
	perms["contents"] = "read"
	w.GrantPermissions("octo", perms)
	w.Forge.InvalidateTokens()
	for range 2 {
		if n := reads(); n != 1 {
			t.Errorf("read %d times while a permission is missing", n)
		}
	}
	if got := w.Forge.CachedInstallations()[0].MissingPermissions(); len(got) != 1 || got[0].Permission != "contents" {
		t.Errorf("got missing permissions %v", got)
	}
}
