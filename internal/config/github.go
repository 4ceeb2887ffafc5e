package config

import "strings"

// GitHub identifies the App and the GitHub instance that it belongs to.
type GitHub struct {
	// AppID is the App's ID, from its settings page.
	AppID int64 `yaml:"app_id"`
	// PrivateKey is the App's private key in PEM form: `file:/etc/errand/app.pem` or `env:NAME`.
	PrivateKey Secret `yaml:"private_key"`
	// Webhooks is push (GitHub sends webhooks to errand) or poll (errand reads them from GitHub's log, every 15 seconds: for a host
	// that GitHub cannot reach).
	Webhooks WebhookMode `yaml:"webhooks"`
	// WebhookSecret is the secret that GitHub signs the App's webhooks with. It is required for push. While it is replaced, a second line
	// contains the previous one, which is accepted too: see `errand rotate webhook-secret`.
	WebhookSecret Secret `yaml:"webhook_secret"`
	// ClientSecret is a client secret of the App, from its settings page. Only admin.sign_in needs it.
	ClientSecret Secret `yaml:"client_secret"`
	// URL is the address of GitHub's web pages: https://github.com, or the address of an Enterprise Server.
	URL string `yaml:"url"`
	// APIURL is the address of the REST API. By default it is derived from url.
	APIURL string `yaml:"api_url"`
	// GraphQLURL is the address of the GraphQL API. By default it is derived from url.
	GraphQLURL string `yaml:"graphql_url"`
}

// WebhookMode is how errand gets webhooks.
type WebhookMode string

// The modes.
const (
	WebhooksPush WebhookMode = "push" // GitHub sends them to errand
	WebhooksPoll WebhookMode = "poll" // errand reads them from GitHub's log
)

// WithURLs returns g with the API addresses filled in: those of github.com or of an Enterprise Server.
func (g GitHub) WithURLs() GitHub {
	base, api, graphql := strings.TrimSuffix(g.URL, "/"), "https://api.github.com/", "https://api.github.com/graphql"
	if base != "https://github.com" {
		api, graphql = base+"/api/v3/", base+"/api/graphql"
	}
	if g.APIURL == "" {
		g.APIURL = api
	}
	if g.GraphQLURL == "" {
		g.GraphQLURL = graphql
	}
	return g
}
