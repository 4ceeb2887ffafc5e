package manifest_test

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/forge/manifest"
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

func TestNewEventsAreOmittedOnEnterpriseServers(t *testing.T) {
	t.Parallel()
	for github, all := range map[string]bool{
		"https://github.com": true, "https://GitHub.com/": true, "https://acme.ghe.com": true,
		"https://github.acme.example": false, "https://github.com.evil.example": false, "http://127.0.0.1:3000": false,
	} {
		events := manifest.Events(github)
		for _, e := range []string{"sub_issues", "issue_dependencies"} {
			if slices.Contains(events, e) != all {
				t.Errorf("%s: event %s: %v, want %v", github, e, !all, all)
			}
		}
		if !slices.Contains(events, "issue_comment") {
			t.Errorf("%s: the manifest has no issue_comment", github)
		}
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
