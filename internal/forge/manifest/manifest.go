// Package manifest describes errand's GitHub App as a manifest, from which GitHub creates the App with the right permissions, events
// and webhook, and exchanges the code of a created App for its credentials.
//
// The permissions and events are those of package forge; app.yml and the manifest are made from the same list. Start with [New].
package manifest

import (
	"net/url"
	"strings"

	"github.com/errand-bot/errand/handlers"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/forge/oauth"
)

// HomePage is the page that GitHub links as the App's own.
const HomePage = "https://github.com/errand-bot/errand"

// MaxName is the maximum length of an App's name.
const MaxName = 34

// Manifest is an App as GitHub creates it. It has no other keys than GitHub knows.
type Manifest struct {
	Name string `json:"name"`
	URL  string `json:"url"`
	Hook Hook   `json:"hook_attributes"`
	// RedirectURL is where GitHub sends the browser with the code of the created App.
	RedirectURL string `json:"redirect_url"`
	// CallbackURLs are where GitHub sends the browsers of people who sign in.
	CallbackURLs []string          `json:"callback_urls,omitempty"`
	Public       bool              `json:"public"`
	Permissions  map[string]string `json:"default_permissions"`
	Events       []string          `json:"default_events"`
}

// Hook is the webhook of an App. It cannot be activated later by a program.
type Hook struct {
	URL    string `json:"url"`
	Active bool   `json:"active"`
}

// Options are the parts of a manifest that differ between Apps.
type Options struct {
	Name        string
	GitHub      string // address of GitHub's web pages
	PublicURL   string // errand's own address, without a path; empty if errand reads webhooks from GitHub's log
	RedirectURL string
	Version     string // of an Enterprise Server, as from [ServerVersion]; empty if it is not known
}

// New returns the manifest of an App.
func New(o Options) Manifest {
	m := Manifest{
		Name: o.Name, URL: HomePage, RedirectURL: o.RedirectURL,
		Hook:        Hook{URL: HookURL(o.PublicURL), Active: true},
		Permissions: map[string]string{}, Events: Events(o.GitHub, o.Version),
	}
	if o.PublicURL != "" {
		m.CallbackURLs = []string{oauth.CallbackURL(o.PublicURL)}
	}
	for _, p := range forge.AppPermissions() {
		m.Permissions[p.Permission] = p.Level
	}
	return m
}

// HookURL returns the address of errand's webhook. Without a public address it is a name that cannot exist: errand then reads the
// webhooks from GitHub's log.
func HookURL(publicURL string) string {
	if publicURL == "" {
		return handlers.NoHook
	}
	return strings.TrimSuffix(publicURL, "/") + handlers.HookPath
}

// IsEnterpriseServer reports whether an address is that of a GitHub Enterprise Server, not of GitHub's own service.
func IsEnterpriseServer(github string) bool {
	u, err := url.Parse(github)
	if err != nil {
		return true
	}
	host := strings.ToLower(u.Hostname())
	return host != "github.com" && !strings.HasSuffix(host, ".ghe.com")
}

// NewAppPage returns the page of GitHub to which a manifest is posted: that of an organization, or of the visitor's own account.
func NewAppPage(github, organization string) string {
	if organization == "" {
		return strings.TrimSuffix(github, "/") + "/settings/apps/new"
	}
	return strings.TrimSuffix(github, "/") + "/organizations/" + url.PathEscape(organization) + "/settings/apps/new"
}

// InstallPage returns the page on which people install an App.
func InstallPage(github, slug string) string {
	path := "/github-apps/"
	if !IsEnterpriseServer(github) {
		path = "/apps/"
	}
	return strings.TrimSuffix(github, "/") + path + url.PathEscape(slug) + "/installations/new"
}
