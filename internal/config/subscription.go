package config

import (
	"cmp"
	"path/filepath"

	"github.com/errand-bot/errand/internal/modelapi"
	"github.com/errand-bot/errand/internal/subscription"
)

// Subscription authenticates calls that a subscription to Claude pays for, instead of a key: a token or a login. errand
// then counts tokens but no dollars.
type Subscription struct {
	// Token is the token that `claude setup-token` prints; it is valid for a year.
	Token Secret `yaml:"token"`
	// Login is the path of a login of Claude Code (its file .credentials.json), created for errand alone. errand renews
	// the login and rewrites the file, after which no other program can use it. The file must not be accessible to
	// others (chmod 600), and errand needs write access to its folder.
	Login string `yaml:"login"`
	// RenewURL is the address at which a login is renewed; by default that of Claude Code.
	RenewURL string `yaml:"renew_url"`
}

// Set reports whether a subscription replaces the key.
func (s Subscription) Set() bool { return s.Token.Set() || s.Login != "" }

// resolve reads the token or the login.
func (s *Subscription) resolve(key string, r *report, env func(string) (string, bool), standIns bool) {
	r.fail(key+".token", s.Token.resolve(env, standIns))
	if s.Login != "" {
		_, err := subscription.Secrets(s.Login)
		r.fail(key+".login", err)
	}
}

// secrets returns the token, or the current tokens of the login.
func (s Subscription) secrets() []string {
	out := []string{s.Token.Reveal()}
	if s.Login != "" {
		tokens, _ := subscription.Secrets(s.Login) // Load has already reported an unreadable file
		out = append(out, tokens...)
	}
	return out
}

// problems checks a provider with a subscription.
func (s Subscription) problems(r *report, name string, m Model) {
	key := "models." + name + ".subscription"
	r.unless(!s.Token.Set() || s.Login == "", key, "write a token or a login, not both")
	r.unless(!m.Key.Set(), "models."+name+".key", "cannot be combined with a subscription; write one of them")
	r.unless(m.Header == "", "models."+name+".header", "the token of a subscription has its own header; remove this key")
	r.unless(m.Dialect(name) == modelapi.Anthropic, key, "only subscriptions to Claude can be used; write a key for a provider of the API %s", m.Dialect(name))
	r.unless(s.Login == "" || filepath.IsAbs(s.Login), key+".login", "%q: write a path that begins with /", s.Login)
	r.unless(s.RenewURL == "" || isURL(s.RenewURL), key+".renew_url", "%q is not an http(s) address", s.RenewURL)
	r.unless(s.Login != "" || s.RenewURL == "", key+".renew_url", "only a login is renewed; remove this key, or write a login")
}

// subscribed reports whether the provider with this name has a subscription.
func (c Config) subscribed(provider string) bool { return c.Models[provider].Subscription.Set() }

// Subscribed returns the names of the providers with a subscription.
func (c Config) Subscribed() map[string]bool {
	out := map[string]bool{}
	for name, m := range c.Models {
		if m.Subscription.Set() {
			out[name] = true
		}
	}
	return out
}

// SubscriptionTurns returns the maximum number of model calls of a run whose calls cost nothing.
func (c Config) SubscriptionTurns() int {
	const most = 200
	return cmp.Or(c.Limits.Turns, most)
}

// allSubscribed reports whether all providers that agents may use have subscriptions.
func (c Config) allSubscribed() bool {
	providers := c.Providers()
	for _, name := range providers {
		if !c.subscribed(name) {
			return false
		}
	}
	return len(providers) > 0
}

// claudeOnly reports an adapter that may not use a subscription: Anthropic permits them for its own program only.
func (c Config) claudeOnly(r *report, adapter, provider string) {
	key := "models." + provider + ".subscription"
	r.unless(!c.subscribed(provider) || adapter == "claude", key, "only the agent claude may use a subscription, but %s uses this provider too; write a key instead, or give %s another provider", adapter, adapter)
}
