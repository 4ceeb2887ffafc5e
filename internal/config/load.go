package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"

	"github.com/errand-bot/errand/internal/agent/registry"
)

// maxFile is the maximum size of a configuration file in bytes.
const maxFile = 256 << 10

// Load reads and validates the file at path; env looks up environment variables. The error for a file that can be read
// but is not valid is an *Invalid.
func Load(path string, env func(string) (string, bool)) (Config, error) {
	c, _, err := load(path, env)
	return c, err
}

func load(path string, env func(string) (string, bool)) (Config, *document, error) {
	data, err := ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Config{}, nil, fmt.Errorf("open the configuration: %w (`errand setup` writes one; -c names another file)", err)
	}
	if errors.Is(err, fs.ErrPermission) {
		return Config{}, nil, fmt.Errorf("open the configuration: %w\nRun this as the user that runs errand: `sudo -u errand errand …`", err)
	}
	if err != nil {
		return Config{}, nil, fmt.Errorf("open the configuration: %w", err)
	}
	c, doc, err := parseFile(data, env)
	if err != nil {
		return c, nil, fmt.Errorf("%s cannot be used:\n%w", path, err)
	}
	return c, doc, nil
}

// ReadFile reads the file at path, but not much more than a configuration can have: a longer one is refused when it is parsed.
func ReadFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, maxFile+1))
}

// Parse is Load for the contents of a file. Its error is an *Invalid.
func Parse(data []byte, env func(string) (string, bool)) (Config, error) {
	c, _, err := parseFile(data, env)
	return c, err
}

func parseFile(data []byte, env func(string) (string, bool)) (Config, *document, error) {
	c := Default()
	doc, err := decode(data, maxFile, &c)
	if err != nil {
		return c, nil, err
	}
	c.agentDefaults(doc)
	problems := c.resolve(env)
	return c, doc, invalid(append(problems, c.problems()...), doc.line)
}

// agentDefaults clears the default adapter's program and model if the file selects another adapter.
func (c *Config) agentDefaults(doc *document) {
	if c.Agent.Adapter == registry.DefaultConfig().Adapter {
		return
	}
	if !doc.has("agent.command") {
		c.Agent.Command = nil
	}
	if !doc.has("agent.model") {
		c.Agent.Model = ""
	}
}

// resolve reads all secrets.
func (c *Config) resolve(env func(string) (string, bool)) report {
	var r report
	local := isLoopback(c.GitHub.URL)
	for _, s := range []struct {
		key    string
		secret *Secret
	}{
		{"github.private_key", &c.GitHub.PrivateKey},
		{"github.webhook_secret", &c.GitHub.WebhookSecret},
		{"github.client_secret", &c.GitHub.ClientSecret},
		{"admin.token", &c.Admin.Token},
	} {
		r.fail(s.key, s.secret.resolve(env, local))
	}
	p, _ := c.provider()
	p.resolve(c, &r, env)
	for name, m := range c.Models {
		r.fail("models."+name+".key", m.Key.resolve(env, local))
		m.Subscription.resolve("models."+name+".subscription", &r, env, local)
		c.Models[name] = m
	}
	c.Registries.resolve(&r, env, local)
	c.TestEnv.resolve(&r, env)
	c.TestFiles.resolve(&r, env, local)
	return r
}

// SecretFiles returns the files that hold errand's own secrets, by their keys in the configuration.
func (c Config) SecretFiles() map[string]string {
	files := map[string]string{
		"github.private_key":    c.GitHub.PrivateKey.file(),
		"github.webhook_secret": c.GitHub.WebhookSecret.file(),
		"github.client_secret":  c.GitHub.ClientSecret.file(),
		"admin.token":           c.Admin.Token.file(),
	}
	for _, p := range providers {
		if p.secrets == nil || p.name != c.Provider {
			continue
		}
		for key, secret := range p.secrets(&c) {
			files[key] = secret.file()
		}
	}
	for name, m := range c.Models {
		files["models."+name+".key"] = m.Key.file()
		files["models."+name+".subscription.token"] = m.Subscription.Token.file()
		files["models."+name+".subscription.login"] = m.Subscription.Login
	}
	for name, g := range c.Registries {
		files["registries."+name+".token"] = g.Token.file()
	}
	maps.DeleteFunc(files, func(_, path string) bool { return path == "" })
	return files
}

// Secrets returns the values of all secrets, including those lent to tests, for redaction.
func (c Config) Secrets() []string {
	out := slices.Concat([]string{c.GitHub.PrivateKey.Reveal()}, c.GitHub.WebhookSecret.Lines(), []string{c.GitHub.ClientSecret.Reveal(), c.Admin.Token.Reveal()})
	for _, p := range providers {
		if p.secrets == nil {
			continue
		}
		for _, secret := range p.secrets(&c) {
			out = append(out, secret.Reveal())
		}
	}
	for _, m := range c.Models {
		out = append(out, m.Key.Reveal())
		out = append(out, m.Subscription.secrets()...)
	}
	out = append(out, c.Registries.secrets()...)
	out = append(out, c.testSecrets()...)
	return slices.DeleteFunc(out, func(s string) bool { return s == "" })
}
