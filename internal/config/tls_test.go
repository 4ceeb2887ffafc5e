package config_test

import (
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/config"
)

// TestTLSHost: the host is named as clients name it.
func TestTLSHost(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"https://Errand.Example.org":     "errand.example.org",
		"https://errand.example.org./":   "errand.example.org",
		"https://bücher.example.org:443": "xn--bcher-kva.example.org",
	} {
		if got := (config.Config{PublicURL: address, TLS: config.TLS{ACME: true}}).TLSHost(); got != want {
			t.Errorf("%s: got %q, want %q", address, got, want)
		}
	}
}

// TestTLSProblems: a certificate by ACME needs a public host name, and the settings of the authority have to be usable.
func TestTLSProblems(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*config.Config)
		want   string // empty: no problem
	}{
		"off":                 {func(c *config.Config) { c.TLS.ACME, c.PublicURL = false, "" }, ""},
		"a host name":         {func(*config.Config) {}, ""},
		"the port of HTTPS":   {func(c *config.Config) { c.PublicURL = "https://errand.example.org:443" }, ""},
		"no address":          {func(c *config.Config) { c.PublicURL = "" }, "public_url: "},
		"HTTP":                {func(c *config.Config) { c.PublicURL = "http://errand.example.org" }, "public_url: "},
		"an IP address":       {func(c *config.Config) { c.PublicURL = "https://192.0.2.1" }, "public_url: "},
		"an IPv6 address":     {func(c *config.Config) { c.PublicURL = "https://[2001:db8::1]" }, "public_url: "},
		"a short name":        {func(c *config.Config) { c.PublicURL = "https://errand" }, "public_url: "},
		"another port":        {func(c *config.Config) { c.PublicURL = "https://errand.example.org:8443" }, "without a port"},
		"an address by mail":  {func(c *config.Config) { c.TLS.Email = "ada@example.org" }, ""},
		"two addresses":       {func(c *config.Config) { c.TLS.Email = "ada@example.org, bob@example.org" }, "tls.email: "},
		"a directory in HTTP": {func(c *config.Config) { c.TLS.Directory = "http://ca.example.org/dir" }, "tls.directory: "},
		"no directory":        {func(c *config.Config) { c.TLS.Directory = "" }, "tls.directory: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := config.Default()
			cfg.TLS.ACME, cfg.PublicURL = true, "https://errand.example.org"
			c.change(&cfg)
			err := cfg.Validate()
			text := ""
			if err != nil {
				for line := range strings.Lines(err.Error()) {
					if strings.Contains(line, "tls.") || strings.Contains(line, "public_url") {
						text += line
					}
				}
			}
			if c.want == "" && text != "" || !strings.Contains(text, c.want) {
				t.Errorf("got %q, want %q", text, c.want)
			}
		})
	}
}
