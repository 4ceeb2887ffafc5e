package config_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/config"
)

// TestSubscription: a token or a login replaces a key, both are redacted, and invalid combinations are errors.
func TestSubscription(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	login, open, codex := filepath.Join(dir, "login"), filepath.Join(dir, "open"), filepath.Join(dir, "codex")
	write(t, login, `{"claudeAiOauth":{"accessToken":"the-access-token","refreshToken":"the-refresh-token"}}`)
	write(t, codex, `{"tokens":{"access_token":"the-access-token"}}`)
	of := func(text string) string { return "{anthropic: {url: 'https://a', " + text + "}}" }
	tests := map[string]struct{ agent, models, problem string }{
		"a token":          {"{}", of("subscription: {token: env:MODEL}"), ""},
		"a login":          {"{}", of("subscription: {login: " + login + "}"), ""},
		"both":             {"{}", of("subscription: {token: env:MODEL, login: " + login + "}"), "models.anthropic.subscription: write a token or a login, not both"},
		"a key, too":       {"{}", of("key: env:MODEL, subscription: {token: env:MODEL}"), "models.anthropic.key: cannot be combined with a subscription"},
		"a header":         {"{}", of("header: X-Api-Key, subscription: {token: env:MODEL}"), "models.anthropic.header: the token of a subscription has its own header"},
		"neither":          {"{}", of("web_tools: false"), "models.anthropic.key: write env:NAME"},
		"no file":          {"{}", of("subscription: {login: " + open + "}"), "no such file"},
		"of Codex":         {"{}", of("subscription: {login: " + codex + "}"), "is a login of Codex, which errand does not support"},
		"no path":          {"{}", of("subscription: {login: login}"), `"login": write a path that begins with /`},
		"nothing to renew": {"{}", of("subscription: {token: env:MODEL, renew_url: 'https://a/b'}"), "only a login is renewed"},
		"no address":       {"{}", of("subscription: {login: " + login + ", renew_url: there}"), `"there" is not an http(s) address`},
		"of ChatGPT":       {"{adapter: codex}", "{openai: {url: 'https://o', subscription: {token: env:MODEL}}}", "models.openai.subscription: only subscriptions to Claude can be used; write a key for a provider of the API openai"},
		"errand's agent":   {"{adapter: api}", of("subscription: {token: env:MODEL}"), "only the agent claude may use a subscription, but api uses this provider too"},
		"of a step":        {"{models: {plan: 'api:claude-x'}}", of("subscription: {token: env:MODEL}"), "only the agent claude may use a subscription, but api uses this provider too"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := config.Parse(routed(test.agent, test.models), env(t))
			if test.problem != "" {
				if err == nil || !strings.Contains(err.Error(), test.problem) || strings.Contains(err.Error(), "the-access") {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil || !c.Settings().Subscription || !c.Subscribed()["anthropic"] {
				t.Fatalf("%v, %+v", err, c.Settings())
			}
			s := c.Models["anthropic"].Subscription
			text := fmt.Sprintf("%v %+v %#v", s, c.Models, c)
			for _, secret := range c.Secrets() {
				if strings.Contains(text, secret) {
					t.Errorf("it prints %s", secret)
				}
			}
			secrets := strings.Join(c.Secrets(), " ")
			if s.Login != "" && !(strings.Contains(secrets, "the-access-token") && strings.Contains(secrets, "the-refresh-token")) || s.Login == "" && !strings.Contains(secrets, s.Token.Reveal()) {
				t.Errorf("what is blanked lacks it")
			}
		})
	}
}

// TestPartlyOnASubscription: if another provider is paid per call, tasks have caps in dollars.
func TestPartlyOnASubscription(t *testing.T) {
	t.Parallel()
	c, err := config.Parse(routed("{models: {review: codex:gpt-5.5}}", "{anthropic: {url: 'https://a', subscription: {token: env:MODEL}}, "+ofOpenAI+"}"), env(t))
	if err != nil || c.Settings().Subscription || !c.Subscribed()["anthropic"] || c.Subscribed()["openai"] {
		t.Errorf("%v, %v, %+v", err, c.Subscribed(), c.Settings())
	}
}
