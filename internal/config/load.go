package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml"
)

// Secret is a value that must not stand in the file: `env:NAME`, `file:/path`, or, for tests and
// stand-ins only, `value:TEXT`. Reveal returns it after Load has resolved it.
type Secret struct {
	from  string
	value string
}

// UnmarshalYAML keeps where the secret comes from; Load resolves it.
func (s *Secret) UnmarshalYAML(data []byte) error {
	var text string
	if err := yaml.Unmarshal(data, &text); err != nil {
		return err
	}
	s.from = text
	return nil
}

// Reveal returns the secret's value.
func (s Secret) Reveal() string { return s.value }

// Set reports whether the file names a source.
func (s Secret) Set() bool { return s.from != "" }

// String tells where the secret comes from, never what it is.
func (s Secret) String() string { return s.from }

// resolve reads the value.
func (s *Secret) resolve(key string, env func(string) (string, bool)) error {
	kind, rest, ok := strings.Cut(s.from, ":")
	switch {
	case s.from == "":
		return nil
	case ok && kind == "env":
		v, found := env(rest)
		if !found || v == "" {
			return fmt.Errorf("%s: the environment variable %s is not set; set it, or write file:/path", key, rest)
		}
		s.value = v
	case ok && kind == "file":
		data, err := os.ReadFile(rest)
		if err != nil {
			return fmt.Errorf("%s: %w; write the path of a file that errand can read", key, err)
		}
		if s.value = strings.TrimSpace(string(data)); s.value == "" {
			return fmt.Errorf("%s: %s is empty", key, rest)
		}
	case ok && kind == "value":
		s.value = rest
	default:
		return fmt.Errorf("%s: a secret does not stand in this file; write env:NAME or file:/path", key)
	}
	return nil
}

// Load reads and validates the file at path. env looks environment variables up.
func Load(path string, env func(string) (string, bool)) (Config, error) {
	f, err := os.Open(path)
	if err != nil {
		return Config{}, fmt.Errorf("open the configuration: %w", err)
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, 1<<20))
	if err != nil {
		return Config{}, fmt.Errorf("read %s: %w", path, err)
	}
	c, err := Parse(data, env)
	if err != nil {
		return c, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// Parse is Load for a file's content.
func Parse(data []byte, env func(string) (string, bool)) (Config, error) {
	c := Default()
	if err := strict(data, &c); err != nil {
		return c, err
	}
	if err := c.secrets(env); err != nil {
		return c, err
	}
	return c, c.Validate()
}

// strict decodes YAML; unknown keys and wrong types are errors with their line.
func strict(data []byte, out any) error {
	err := yaml.NewDecoder(bytes.NewReader(data), yaml.Strict(), yaml.DisallowUnknownField()).Decode(out)
	if errors.Is(err, io.EOF) {
		return nil // an empty file is all defaults
	}
	if err != nil {
		return errors.New(yaml.FormatError(err, false, true))
	}
	return nil
}

// secrets resolves all of them.
func (c *Config) secrets(env func(string) (string, bool)) error {
	errs := []error{
		c.GitHub.PrivateKey.resolve("github.private_key", env),
		c.GitHub.WebhookSecret.resolve("github.webhook_secret", env),
		c.Admin.Token.resolve("admin.token", env),
	}
	for name, m := range c.Models {
		errs = append(errs, m.Key.resolve("models."+name+".key", env))
		c.Models[name] = m
	}
	return errors.Join(errs...)
}

// Secrets lists every secret's value, for redaction.
func (c Config) Secrets() []string {
	out := []string{c.GitHub.PrivateKey.Reveal(), c.GitHub.WebhookSecret.Reveal(), c.Admin.Token.Reveal()}
	for _, m := range c.Models {
		out = append(out, m.Key.Reveal())
	}
	var set []string
	for _, s := range out {
		if s != "" {
			set = append(set, s)
		}
	}
	return set
}

var deployment = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)

// Validate says everything that is wrong, each with its key and what to write.
func (c Config) Validate() error {
	var errs []error
	bad := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	bad(deployment.MatchString(c.Deployment), "deployment: %q: lower-case letters, digits and hyphens, at most 32", c.Deployment)
	bad(c.Data != "", "data: name a folder, such as /var/lib/errand")
	bad(c.GitHub.AppID > 0, "github.app_id: write the App's number from its settings page")
	bad(c.GitHub.PrivateKey.Set(), "github.private_key: write file:/path/to/app.pem or env:NAME")
	bad(c.GitHub.WebhookSecret.Set(), "github.webhook_secret: write env:NAME or file:/path; without a secret anybody could direct the bot")
	bad(isURL(c.GitHub.URL), "github.url: %q is no http(s) address", c.GitHub.URL)
	bad(c.PublicURL == "" || isURL(c.PublicURL), "public_url: %q is no http(s) address", c.PublicURL)
	bad(c.Admin.Token.Set() || c.Admin.Listen != "", "admin.token: write env:NAME or file:/path, or give the pages an address of their own with admin.listen")
	bad(c.Provider == "local", "provider: %q: write local", c.Provider)
	bad(oneOf(c.Local.Kind, "auto", "bwrap", "userns", "plain"), "local.kind: %q: write auto, bwrap, userns or plain", c.Local.Kind)
	bad(oneOf(c.Log.Level, "debug", "info", "warn", "error"), "log.level: %q: write debug, info, warn or error", c.Log.Level)
	bad(oneOf(c.Log.Format, "json", "console"), "log.format: %q: write json or console", c.Log.Format)
	bad(c.Limits.Turns > 0 && c.Limits.VMs > 0 && c.Limits.Cost > 0 && c.Limits.Duration > 0, "limits: turns, vms, cost and duration have to be above zero")
	if err := c.Agent.Validate(); err != nil {
		errs = append(errs, err)
	}
	for name, m := range c.Models {
		bad(isURL(m.URL), "models.%s.url: %q is no http(s) address", name, m.URL)
		bad(m.Key.Set(), "models.%s.key: write env:NAME or file:/path", name)
	}
	errs = append(errs, validTemplates(c.Repository.Branch, c.Repository.Commit, c.Repository.Title)...)
	bad(oneOf(string(c.Repository.Plan), "two-step", "one-step", "none"), "repository.plan: %q: write two-step, one-step or none", c.Repository.Plan)
	return errors.Join(errs...)
}

func oneOf(s string, list ...string) bool {
	for _, l := range list {
		if s == l {
			return true
		}
	}
	return false
}

func isURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}
