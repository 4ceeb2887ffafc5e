package setup

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/errand-bot/errand/internal/agent/programs"
	"github.com/errand-bot/errand/internal/agent/registry"
	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/forge/manifest"
	"github.com/errand-bot/errand/internal/modelapi"
)

// Question is something that the setup asks. The documentation lists all of them.
type Question struct {
	Key      string
	Text     string // for the terminal and the documentation
	Default  string // in the documentation; the real one may depend on other answers
	Required bool   // there is no default
	Optional bool   // the answer can be empty
	// Secret answers are env:NAME or file:/path in a file. In the terminal the value itself can be entered. They are stored in their own
	// file.
	Secret bool
	file   string // of a secret
	once   bool   // the answer can be used once, and is not remembered

	choices  []string          // nil: any text
	fallback func(*run) string // default that depends on other answers
	when     func(*run) bool   // nil: always
	check    func(*run, string) error
}

func (q Question) applies(r *run) bool { return q.when == nil || q.when(r) }

// masked reports whether an answer is shown nowhere and remembered nowhere but in its own file.
func (q Question) masked() bool { return q.Secret || q.once }

// kept reports whether a secret is stored already.
func (q Question) kept(r *run) bool {
	if q.file == "" {
		return false
	}
	_, err := os.Stat(r.path(q.file))
	return err == nil
}

// fixed reports whether an answer cannot be changed any more: the App exists at that address of GitHub.
func (q Question) fixed(r *run) bool {
	return q.Key == "github" && r.progress.App != nil && !r.opts.Force
}

// validate returns why an answer cannot be used.
func (q Question) validate(r *run, value string) error {
	if strings.ContainsFunc(value, unicode.IsControl) || len(value) > 2000 {
		return errors.New("write at most 2000 characters on one line")
	}
	if value == "" && !q.Optional && !q.kept(r) {
		return errors.New("an answer is required")
	}
	switch {
	case value == "":
		return nil
	case q.choices != nil && !slices.Contains(q.choices, value):
		return fmt.Errorf("%q: write %s", value, strings.Join(q.choices, " or "))
	case q.check == nil:
		return nil
	}
	return q.check(r, value)
}

// is returns a condition: another question has one of these answers.
func is(key string, values ...string) func(*run) bool {
	return func(r *run) bool { return slices.Contains(values, r.answer(key)) }
}

const pushed = string(config.WebhooksPush)

// Questions returns all questions in the order in which they are asked.
func Questions() []Question {
	return []Question{
		{Key: "github", Text: "Address of GitHub, or of your Enterprise Server", Default: "https://github.com", check: checkGitHub},
		{Key: "webhooks", Text: "How webhooks reach errand: push (GitHub sends them to errand's address) or poll (errand reads them from GitHub's log " +
			"every 15 seconds and needs no public address)", Default: pushed, choices: []string{pushed, string(config.WebhooksPoll)}},
		{Key: "tls", Text: "Who serves HTTPS: proxy (a reverse proxy in front of errand) or acme (errand, on port 443, with a certificate of Let's Encrypt, " +
			"whose terms of service you accept by this)", Default: "proxy", when: is("webhooks", pushed), choices: []string{"proxy", "acme"}},
		{Key: "public_url", Text: "Address at which GitHub and people reach errand, such as https://errand.example.org",
			Required: true, when: is("webhooks", pushed), check: checkPublicURL},
		{Key: "listen", Text: "Address on this host at which errand serves", Default: "`" + config.Default().Listen + "`, or `:443` with acme",
			fallback: defaultListen, check: checkListen},
		{Key: "trusted_proxies", Text: "Addresses of the proxy, separated by commas", Default: "127.0.0.1", Optional: true,
			when: func(r *run) bool { return r.answer("webhooks") == pushed && !r.servesTLS() }, check: checkProxies},
		{Key: "data", Text: "Folder for errand's data",
			Default:  "`/var/lib/errand` for `/etc/errand`, otherwise `data` in the folder of the setup",
			fallback: defaultData, check: checkPath},
		{Key: "label", Text: "Label that starts a task; empty for none", Default: "errand", Optional: true, check: checkLabel},
		{Key: "assignee", Text: "Login of the machine user to which people assign issues; empty for none", Optional: true, check: checkLogin},
		{Key: "agent", Text: "Agent's program: " + strings.Join(agents(), ", ") + " (api is errand's own, and needs no program)", Default: registry.DefaultConfig().Adapter,
			choices: agents()},
		{Key: "model_url", Text: "Address of the model provider's API", Default: "that of the agent's provider",
			fallback: func(r *run) string { return defaultModelURL(r.answer("agent")) }, check: checkModelURL},
		{Key: "model_auth", Text: "Pay the model by an API key (key) or by a Claude subscription's token from " +
			"`claude setup-token` (subscription)",
			Default: "key", when: is("agent", "claude"), choices: []string{"key", "subscription"}},
		{Key: "model_key", Text: "API key, or token of the subscription", Required: true, Secret: true, file: "model-key", check: checkToken},
		{Key: "vms", Text: "Where agents work: local (sandboxes on this host) or hetzner (VMs in Hetzner Cloud)", Default: config.ProviderLocal,
			choices: config.ProviderNames()},
		{Key: "agent_program", Text: "How the agent's program gets where agents work: install (by npm, in the version that errand is tested with, on this host " +
			"or on each VM) or present (you have installed it)", Default: "`present`; `install` for VMs except with gemini, and in a terminal if this host lacks the program",
			when: is("agent", programs.Names()...), choices: []string{install, present}, fallback: defaultProgram, check: checkProgram},
		{Key: "hetzner_token", Text: "API token of the project in Hetzner Cloud, with read and write permission", Required: true, Secret: true,
			file: "hetzner-token", when: is("vms", config.ProviderHetzner), check: checkToken},
		{Key: "app", Text: "GitHub App: create (in a browser, on a page of this host), code (a code that GitHub gave out) or existing",
			Default: "create", choices: []string{"create", "code", "existing"}, check: checkApp},
		{Key: "app_name", Text: "Name of the App, by which people mention it; no other App on GitHub may have it", Default: "errand",
			when: is("app", "create"), check: checkAppName},
		{Key: "organization", Text: "Organization that owns the App; empty for your own account", Optional: true,
			when: is("app", "create"), check: checkLogin},
		{Key: "app_code", Text: "Code at the end of the address to which GitHub sent the browser", Required: true, once: true,
			when: is("app", "code")},
		{Key: "app_id", Text: "ID of the existing App", Required: true, when: is("app", "existing"), check: checkNumber},
		{Key: "private_key", Text: "Private key of the existing App, as file:/path or env:NAME", Required: true, Secret: true, file: "app.pem",
			when: is("app", "existing"), check: checkReference},
		{Key: "webhook_secret", Text: "Webhook secret of the existing App", Required: true, Secret: true, file: "webhook-secret",
			when: is("app", "existing"), check: checkSecret},
		{Key: "create_label", Text: "Create the label in the repositories that lack it (yes or no)", Default: "yes", choices: []string{"yes", "no"}},
		{Key: "user", Text: "User of this host that runs errand", Default: "this user; for root the user `errand`, if it exists",
			fallback: defaultUser, check: checkUser},
		{Key: "unit", Text: "systemd units: start (write them to /etc/systemd/system and start errand, as root), write or print", Default: "print",
			choices: []string{startUnit, writeUnit, printUnit}, check: checkUnit},
	}
}

func questionOf(key string) Question {
	list := Questions()
	return list[slices.IndexFunc(list, func(q Question) bool { return q.Key == key })]
}

// agents returns the agents that need no further settings.
func agents() []string {
	return slices.DeleteFunc(registry.Names(), func(n string) bool { return registry.APIOf(n) == "" })
}

// defaultModelURL returns the address of the API that an agent calls.
func defaultModelURL(agent string) string {
	return map[string]string{
		string(modelapi.Anthropic): "https://api.anthropic.com", string(modelapi.OpenAI): "https://api.openai.com",
		string(modelapi.Gemini): "https://generativelanguage.googleapis.com",
	}[registry.APIOf(agent)]
}

// servesTLS reports whether errand serves HTTPS itself.
func (r *run) servesTLS() bool {
	q := questionOf("tls")
	return q.applies(r) && r.answer("tls") == "acme"
}

func defaultListen(r *run) string {
	if r.servesTLS() {
		return ":443"
	}
	return config.Default().Listen
}

// defaultData returns the folder for data: that of the systemd unit for its folder of the configuration.
func defaultData(r *run) string {
	if r.dir == "/etc/errand" {
		return "/var/lib/errand"
	}
	return r.path("data")
}

func checkURL(_ *run, v string) error {
	u, err := url.Parse(v)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return fmt.Errorf("%q: write an address that begins with https://", v)
	}
	return nil
}

// checkModelURL accepts http only in private networks, because the key travels there.
func checkModelURL(_ *run, v string) error {
	if err := checkURL(nil, v); err != nil {
		return err
	}
	u, _ := url.Parse(v) // checked above
	ip := net.ParseIP(u.Hostname())
	private := isLoopback(u) || ip != nil && ip.IsPrivate() || ip == nil && !strings.Contains(u.Hostname(), ".") // such as a container's name
	if u.Scheme != "https" && !private {
		return fmt.Errorf("%q: write an address that begins with https://: the key travels there", v)
	}
	return nil
}

// checkOrigin accepts addresses without path, query and credentials: https, or http on this host.
func checkOrigin(v, what string) (*url.URL, error) {
	if err := checkURL(nil, v); err != nil {
		return nil, err
	}
	u, _ := url.Parse(v) // checked above
	switch {
	case u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("%q: write %s without a path, because it needs a host name of its own", v, what)
	case u.Scheme != "https" && !isLoopback(u):
		return nil, fmt.Errorf("%q: write an address that begins with https://: secrets travel there", v)
	}
	return u, nil
}

func checkGitHub(_ *run, v string) error {
	u, err := checkOrigin(v, "the address of GitHub")
	if err == nil && strings.HasSuffix(strings.ToLower(u.Hostname()), ".ghe.com") {
		return fmt.Errorf("%q: the API of ghe.com has an address of its own; follow the manual way in docs/install.md", v)
	}
	return err
}

func checkPublicURL(r *run, v string) error {
	u, err := checkOrigin(v, "errand's address")
	if err != nil {
		return err
	}
	github, err := url.Parse(r.answer("github"))
	switch {
	case err == nil && isLoopback(u) && !isLoopback(github):
		return fmt.Errorf("%q: GitHub cannot reach this address; write one that is public", v)
	case r.servesTLS():
		return config.CheckTLSHost(v)
	}
	return nil
}

func isLoopback(u *url.URL) bool {
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

func checkListen(_ *run, v string) error {
	_, port, err := net.SplitHostPort(v)
	if n, perr := strconv.ParseUint(port, 10, 16); err != nil || perr != nil || n == 0 {
		return fmt.Errorf("%q: write HOST:PORT, such as 127.0.0.1:8080", v)
	}
	_, err = listenStream(v)
	return err
}

func checkProxies(_ *run, v string) error {
	for one := range strings.SplitSeq(v, ",") {
		one = strings.TrimSpace(one)
		_, errAddr := netip.ParseAddr(one)
		_, errPrefix := netip.ParsePrefix(one)
		if errAddr != nil && errPrefix != nil {
			return fmt.Errorf("%q: write addresses such as 127.0.0.1 or 10.0.0.0/8", one)
		}
	}
	return nil
}

func checkPath(_ *run, v string) error {
	if !filepath.IsAbs(v) {
		return fmt.Errorf("%q: write a path that begins with /", v)
	}
	return nil
}

func checkLabel(_ *run, v string) error {
	if v != strings.TrimSpace(v) || len([]rune(v)) > 50 {
		return fmt.Errorf("%q: write at most 50 characters, without spaces around them", v)
	}
	return nil
}

var loginForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$`)

func checkLogin(_ *run, v string) error {
	if !loginForm.MatchString(v) {
		return fmt.Errorf("%q: write a login as GitHub shows it, without @", v)
	}
	return nil
}

func checkAppName(_ *run, v string) error {
	if len(v) > manifest.MaxName || v != strings.TrimSpace(v) {
		return fmt.Errorf("%q: write at most %d characters, without spaces around them", v, manifest.MaxName)
	}
	return nil
}

func checkNumber(_ *run, v string) error {
	if n, err := strconv.ParseInt(v, 10, 64); err != nil || n <= 0 {
		return fmt.Errorf("%q: write the App's number from its settings page", v)
	}
	return nil
}

func checkSecret(r *run, v string) error {
	_, err := r.reveal(v)
	return err
}

// checkToken accepts what can be sent in a header, unlike two keys, or a page that was saved instead of a key.
func checkToken(r *run, v string) error {
	token, err := r.reveal(v)
	if err == nil && strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c > '~' }) {
		err = errors.New("a key is one line of letters, digits and punctuation: copy it again, and nothing else")
	}
	return err
}

// checkReference accepts env:NAME and file:/path only: a secret of several lines cannot be entered in the terminal.
func checkReference(r *run, v string) error {
	if !strings.HasPrefix(v, "file:") && !strings.HasPrefix(v, "env:") {
		return errors.New("write file:/path or env:NAME, not the secret itself")
	}
	return checkSecret(r, v)
}

// CheckManifest returns why no manifest can be made with these options, with the names of the flags.
func CheckManifest(o manifest.Options) error {
	if o.PublicURL == "" {
		return errors.New("--print-manifest needs --public-url, the address at which GitHub reaches errand")
	}
	r := &run{given: Answers{"github": o.GitHub}}
	for _, c := range []struct {
		flag string
		err  error
	}{
		{"--github", checkGitHub(r, o.GitHub)}, {"--public-url", checkPublicURL(r, o.PublicURL)}, {"--redirect", checkURL(r, o.RedirectURL)},
		{"--name", questionOf("app_name").validate(r, o.Name)},
	} {
		if c.err != nil {
			return fmt.Errorf("%s: %w", c.flag, c.err)
		}
	}
	return nil
}
