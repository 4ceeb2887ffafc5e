package config

import "strings"

// GitHub is the App and where its GitHub is.
type GitHub struct {
	// AppID is the App's number, from its settings page.
	AppID int64 `yaml:"app_id"`
	// PrivateKey is the App's key in PEM form: `file:/etc/errand/app.pem` or `env:NAME`.
	PrivateKey Secret `yaml:"private_key"`
	// WebhookSecret is what the App's webhooks are signed with; it is mandatory.
	WebhookSecret Secret `yaml:"webhook_secret"`
	// URL is where people open GitHub: https://github.com, or the address of an Enterprise Server.
	URL string `yaml:"url"`
	// APIURL is the REST API's address; it follows from URL unless set.
	APIURL string `yaml:"api_url"`
	// GraphQLURL is the GraphQL API's address; it follows from URL unless set.
	GraphQLURL string `yaml:"graphql_url"`
}

// WithURLs fills in the API's addresses: github.com's own, or those of an Enterprise Server.
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
