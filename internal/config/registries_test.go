package config_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/config"
)

// withRegistries returns a complete configuration with registries, of which each is one line of YAML.
func withRegistries(lines ...string) string {
	return minimalConfig + "registries:\n  " + strings.Join(lines, "\n  ") + "\n"
}

// TestRegistriesOfARepository: each repository gets the registries that name it, with the credential in its header. All forms of the credentials are
// secrets.
func TestRegistriesOfARepository(t *testing.T) {
	t.Parallel()
	environment := func(name string) (string, bool) {
		if value, ok := map[string]string{"NPM": "npm-token-1\n", "MAVEN": "maven-password", "GO": "go-key-12345"}[name]; ok {
			return value, true
		}
		return env(t)(name)
	}
	c, err := config.Parse([]byte(withRegistries(
		"npm: {url: 'https://packages.test/npm/', repositories: [acme/shop, acme/lib-*], token: env:NPM}",
		"maven: {url: 'https://packages.test:8443/maven', repositories: [Acme/*], token: env:MAVEN, user: bot}",
		"go: {url: 'https://go.test', repositories: [other/*], token: env:GO, header: X-Key}",
	)), environment)
	if err != nil {
		t.Fatal(err)
	}
	for repo, want := range map[string]string{
		"acme/shop":    "maven https://packages.test:8443/maven Authorization Basic Ym90Om1hdmVuLXBhc3N3b3Jk, npm https://packages.test/npm Authorization Bearer npm-token-1",
		"ACME/lib-x":   "maven https://packages.test:8443/maven Authorization Basic Ym90Om1hdmVuLXBhc3N3b3Jk, npm https://packages.test/npm Authorization Bearer npm-token-1",
		"acme/website": "maven https://packages.test:8443/maven Authorization Basic Ym90Om1hdmVuLXBhc3N3b3Jk",
		"other/x":      "go https://go.test X-Key go-key-12345",
		"acme/lib/x":   "",
		"evil/shop":    "",
	} {
		var got []string
		for _, r := range c.EgressFor(repo).Registries {
			got = append(got, r.Name+" "+r.URL.String()+" "+r.Header+" "+r.Value)
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s: got %q, want %q", repo, got, want)
		}
	}
	if got := strings.Join(c.Registries.Hosts(), " "); got != "go.test packages.test" {
		t.Errorf("hosts %q", got)
	}
	for _, secret := range []string{"npm-token-1", "maven-password", "Ym90Om1hdmVuLXBhc3N3b3Jk", "go-key-12345"} {
		if !slices.Contains(c.Secrets(), secret) {
			t.Errorf("%q is not among the secrets %q", secret, c.Secrets())
		}
	}
}

// TestRegistriesReportProblems: each mistake is reported with its key and what to write instead.
func TestRegistriesReportProblems(t *testing.T) {
	t.Parallel()
	environment := func(name string) (string, bool) {
		switch name {
		case "TOKEN":
			return "a-long-token", true
		case "SHORT":
			return "short", true
		case "LINES":
			return "a-long-token\nand-more", true
		}
		return env(t)(name)
	}
	for name, test := range map[string]struct {
		lines []string
		want  string
	}{
		"no address":       {[]string{"x: {repositories: [a/b], token: env:TOKEN}"}, "registries.x.url: \"\": write an address"},
		"http":             {[]string{"x: {url: 'http://x.test', repositories: [a/b], token: env:TOKEN}"}, "registries.x.url: \"http://x.test\": write an address"},
		"a user":           {[]string{"x: {url: 'https://me:secret@x.test', repositories: [a/b], token: env:TOKEN}"}, "must not contain a user"},
		"a query":          {[]string{"x: {url: 'https://x.test/?a=b', repositories: [a/b], token: env:TOKEN}"}, "must not contain a user, a query"},
		"an IP address":    {[]string{"x: {url: 'https://10.0.0.1/npm', repositories: [a/b], token: env:TOKEN}"}, "neither an IP address"},
		"a pattern":        {[]string{"x: {url: 'https://*.x.test/npm', repositories: [a/b], token: env:TOKEN}"}, "nor a pattern"},
		"a foreign name":   {[]string{"x: {url: 'https://bücher.test/npm', repositories: [a/b], token: env:TOKEN}"}, "in lower case"},
		"a dot at the end": {[]string{"x: {url: 'https://x.test./npm', repositories: [a/b], token: env:TOKEN}"}, "in lower case"},
		"a wrong port":     {[]string{"x: {url: 'https://x.test:99999/npm', repositories: [a/b], token: env:TOKEN}"}, "a port from 1"},
		"the usual port": {[]string{
			"a: {url: 'https://x.test/npm', repositories: [a/b], token: env:TOKEN}", "b: {url: 'https://x.test:443/npm', repositories: [c/d], token: env:TOKEN}",
		}, "it is also the address of registries.a"},
		"a header of HTTP": {[]string{"x: {url: 'https://x.test', repositories: [a/b], token: env:TOKEN, header: Transfer-Encoding}"}, "is not the name of a header"},
		"capitals":         {[]string{"x: {url: 'https://X.test/npm', repositories: [a/b], token: env:TOKEN}"}, "in lower case"},
		"a step up":        {[]string{"x: {url: 'https://x.test/a/../b', repositories: [a/b], token: env:TOKEN}"}, "without empty parts"},
		"no repositories":  {[]string{"x: {url: 'https://x.test', token: env:TOKEN}"}, "registries.x.repositories: write which"},
		"no repository":    {[]string{"x: {url: 'https://x.test', repositories: [acme], token: env:TOKEN}"}, "registries.x.repositories[0]: \"acme\": write OWNER/REPO"},
		"no token":         {[]string{"x: {url: 'https://x.test', repositories: [a/b]}"}, "registries.x.token: write where"},
		"a short token":    {[]string{"x: {url: 'https://x.test', repositories: [a/b], token: env:SHORT}"}, "fewer than 8 characters"},
		"two lines":        {[]string{"x: {url: 'https://x.test', repositories: [a/b], token: env:LINES}"}, "contains a line end"},
		"user and header":  {[]string{"x: {url: 'https://x.test', repositories: [a/b], token: env:TOKEN, user: u, header: X-Key}"}, "user or header, not both"},
		"a wrong header":   {[]string{"x: {url: 'https://x.test', repositories: [a/b], token: env:TOKEN, header: 'X Key'}"}, "is not the name of a header"},
		"a colon":          {[]string{"x: {url: 'https://x.test', repositories: [a/b], token: env:TOKEN, user: 'a:b'}"}, "must not contain a colon"},
		"a wrong name":     {[]string{"X_y: {url: 'https://x.test', repositories: [a/b], token: env:TOKEN}"}, "use lower-case letters"},
		"the same address": {[]string{
			"a: {url: 'https://x.test/npm', repositories: [a/b], token: env:TOKEN}", "b: {url: 'https://x.test/npm/', repositories: [c/d], token: env:TOKEN}",
		}, "it is also the address of registries.a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := config.Parse([]byte(withRegistries(test.lines...)), environment)
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "a-long-token") {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
