package manifest_test

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/forge/manifest"
	"github.com/errand-bot/errand/internal/webtest"
)

// TestManifestMatchesAppYML compares the manifest for github.com with app.yml, value by value.
func TestManifestMatchesAppYML(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../../app.yml")
	if err != nil {
		t.Fatal(err)
	}
	var want, got map[string]any
	if err := yaml.Unmarshal(raw, &want); err != nil {
		t.Fatal(err)
	}
	m := manifest.New(manifest.Options{Name: "errand", GitHub: "https://github.com", PublicURL: "https://errand.example.org/", RedirectURL: "http://127.0.0.1:1/created"})
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if got["redirect_url"] != "http://127.0.0.1:1/created" {
		t.Errorf("redirect_url is %v", got["redirect_url"])
	}
	delete(got, "redirect_url") // an App that is created by hand has none
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-app.yml +manifest:\n%s", diff)
	}
}

// TestManifestHasOnlyKeysOfGitHub checks the keys against those that GitHub's documentation lists.
func TestManifestHasOnlyKeysOfGitHub(t *testing.T) {
	t.Parallel()
	known := []string{
		"name", "url", "hook_attributes", "redirect_url", "callback_urls", "setup_url", "setup_on_update", "description", "public",
		"default_events", "default_permissions", "request_oauth_on_install",
	}
	text, err := json.Marshal(manifest.New(manifest.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	for _, key := range slices.Sorted(maps.Keys(got)) {
		if !slices.Contains(known, key) {
			t.Errorf("GitHub's manifests have no key %q", key)
		}
	}
	if got["public"] != false {
		t.Errorf("public is %v", got["public"])
	}
}

// TestOnlyUnknownEventsAreOmitted compares the events that are left out with GitHub's descriptions of webhooks: one for each version of the
// Enterprise Server.
func TestOnlyUnknownEventsAreOmitted(t *testing.T) {
	t.Parallel()
	both, sub := []string{"sub_issues", "issue_dependencies"}, []string{"sub_issues"}
	for _, c := range []struct {
		github, version string
		want            []string
	}{
		{"https://github.com", "", nil},
		{"https://GitHub.com/", "3.2.1", nil},
		{"https://acme.ghe.com", "", nil},
		{"https://github.com.evil.example", "", both},
		{"http://127.0.0.1:3000", "", both},
		{"https://ghes.example", "GitHub AE", both},
		{"https://ghes.example", "2.22.9", both},
		{"https://ghes.example", "3.2.0", both},
		{"https://ghes.example", "3.18.4", both},
		{"https://ghes.example", "3.19.0", sub},
		{"https://ghes.example", "3.19.0.rc1", sub},
		{"https://ghes.example", "3.22.1", sub},
		{"https://ghes.example", "4.0.0", sub},
	} {
		if diff := cmp.Diff(c.want, manifest.UnknownEvents(c.github, c.version)); diff != "" {
			t.Errorf("%s, version %q: unknown events (-want +got):\n%s", c.github, c.version, diff)
		}
		events := manifest.Events(c.github, c.version)
		if len(events)+len(c.want) != len(forge.Events()) || !slices.Contains(events, "issue_comment") {
			t.Errorf("%s, version %q: the events are %v", c.github, c.version, events)
		}
	}
}

// TestServerVersion asks servers that answer in every way.
func TestServerVersion(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status                 int
		header, body, location string
		want                   string
		other, unclear         bool
	}{
		"header":             {status: 200, header: "3.19.2", body: "{}", want: "3.19.2"},
		"body":               {status: 200, body: `{"installed_version": "3.18.0", "hooks": ["192.0.2.1"]}`, want: "3.18.0"},
		"private mode":       {status: 401, header: "3.17.1", body: `{"message": "Must authenticate"}`, want: "3.17.1"},
		"a login in between": {status: 401, body: `{}`, unclear: true},
		"under maintenance":  {status: 503, body: `<html>`, unclear: true},
		"a page":             {status: 200, body: `<html>Welcome to nginx!</html>`, other: true},
		"no version":         {status: 200, body: `{"hooks": []}`, other: true},
		"a hostile version":  {status: 200, header: "<script>", body: `{"installed_version": "3.x"}`, other: true},
		"an endless answer":  {status: 200, body: `{"hooks": "` + strings.Repeat("x", 5<<20), other: true},
		"nothing there":      {status: 404, body: `<html>`, other: true},
		"leads elsewhere":    {status: 302, location: "/login", other: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/api/v3/meta" {
					t.Errorf("request for %s", r.URL.Path)
				}
				for k, v := range map[string]string{"X-GitHub-Enterprise-Version": c.header, "Location": c.location} {
					if v != "" {
						w.Header().Set(k, v)
					}
				}
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			}))
			defer server.Close()
			got, err := manifest.ServerVersion(t.Context(), webtest.Transport(), server.URL+"/api/v3/")
			if got != c.want || errors.Is(err, manifest.ErrNotGitHub) != c.other || (err != nil) != (c.other || c.unclear) || err != nil && len(err.Error()) > 300 {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	if _, err := manifest.ServerVersion(t.Context(), webtest.Transport(), "http://127.0.0.1:1/api/v3"); err == nil || errors.Is(err, manifest.ErrNotGitHub) {
		t.Errorf("nobody answers: %v", err)
	}
}

func TestPages(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		manifest.NewAppPage("https://github.com/", ""):              "https://github.com/settings/apps/new",
		manifest.NewAppPage("https://ghes.example", "acme"):         "https://ghes.example/organizations/acme/settings/apps/new",
		manifest.InstallPage("https://github.com", "errand"):        "https://github.com/apps/errand/installations/new",
		manifest.InstallPage("https://ghes.example/", "errand-one"): "https://ghes.example/github-apps/errand-one/installations/new",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
