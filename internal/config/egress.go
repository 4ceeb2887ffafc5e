package config

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/egress"
	"github.com/errand-bot/errand/internal/secretscan"
)

// Egress lists the hosts that VMs may reach besides the model and their repository: by name, through a proxy that logs
// every request, and on ports 443 and 80 unless another one is given. It restricts nothing if a VM has its own open
// network.
type Egress struct {
	// Allow lists hosts, such as proxy.example.org or *.example.org for all its subdomains, and groups of hosts:
	// containers (image registries), debian, go, java, npm, python, ruby, rust. All groups but containers by default.
	Allow []string `yaml:"allow"`
	// Repositories lists additional hosts and groups for single repositories: {OWNER/REPO: [HOST, containers]}.
	Repositories map[string][]string `yaml:"repositories"`
}

var fullName = regexp.MustCompile(`^[A-Za-z0-9-]+/[A-Za-z0-9._-]+$`)

func (e Egress) problems(r *report) {
	for i, host := range e.Allow {
		if err := egress.Check(host); err != nil {
			r.unless(false, fmt.Sprintf("egress.allow[%d]", i), "%s", err)
		}
	}
	for repo, hosts := range e.Repositories {
		key := "egress.repositories." + repo
		r.unless(fullName.MatchString(repo), key, "%q: write OWNER/REPO", repo)
		for i, host := range hosts {
			if err := egress.Check(host); err != nil {
				r.unless(false, fmt.Sprintf("%s[%d]", key, i), "%s", err)
			}
		}
	}
}

// EgressFor returns what the VMs of a repository, named as OWNER/NAME, may reach.
func (c Config) EgressFor(repo string) egress.Policy {
	return egress.Policy{Allow: c.Egress.hosts(repo), Registries: c.Registries.For(repo)}
}

// hosts returns the hosts that the VMs of a repository may reach without a credential.
func (e Egress) hosts(repo string) []string {
	allow := e.Allow
	for name, hosts := range e.Repositories {
		if strings.EqualFold(name, repo) {
			allow = slices.Concat(allow, hosts)
		}
	}
	return egress.Hosts(allow)
}

// A Registry is a private server of packages.
type Registry struct {
	// URL is the registry's https address. VMs can read all paths below it; everything else on that host is refused.
	URL string `yaml:"url"`
	// Repositories are the repositories whose VMs may read from it, as OWNER/NAME, with * for any characters of a name.
	Repositories []string `yaml:"repositories"`
	// Token is a credential that can only read. errand sends it as a bearer token unless user or header is set.
	Token Secret `yaml:"token"`
	// User is the user name for registries that require one; the token is then the password.
	User string `yaml:"user"`
	// Header is the name of a header that carries the token alone, such as X-JFrog-Art-Api.
	Header string `yaml:"header"`
}

// Registries are the private registries by name.
type Registries map[string]Registry

var (
	registryName   = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,39}$`)
	registryHost   = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`)
	registryPort   = regexp.MustCompile(`^[1-9][0-9]{0,4}$`)
	registryHeader = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]{0,60}$`)
)

func (g Registries) resolve(r *report, env func(string) (string, bool), standIns bool) {
	for _, name := range slices.Sorted(maps.Keys(g)) {
		entry := g[name]
		r.fail("registries."+name+".token", entry.Token.resolve(env, standIns))
		g[name] = entry
	}
}

func (g Registries) problems(r *report) {
	urls := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(g)) {
		key, entry := "registries."+cut(name), g[name]
		r.unless(registryName.MatchString(name), key, "%q: use lower-case letters, digits and hyphens", cut(name))
		u, err := registryURL(entry.URL)
		if err != nil {
			r.unless(false, key+".url", "%s", err)
		} else if other, twice := urls[u.String()]; twice {
			r.unless(false, key+".url", "it is also the address of registries.%s; an address can have one token", other)
		} else {
			urls[u.String()] = name
		}
		r.unless(len(entry.Repositories) > 0, key+".repositories", "write which repositories may read from it, as OWNER/REPO or OWNER/*")
		for i, repo := range entry.Repositories {
			r.unless(isPattern(repo), fmt.Sprintf("%s.repositories[%d]", key, i), "%q: write OWNER/REPO", cut(repo))
		}
		r.unless(entry.Token.Set(), key+".token", "write where errand finds the token: file:/path or env:NAME")
		token := strings.TrimSpace(entry.Token.Reveal())
		r.unless(token == "" || len(token) >= secretscan.MinKnown, key+".token", "a token of fewer than %d characters cannot be redacted reliably; make a longer one", secretscan.MinKnown)
		r.unless(!strings.ContainsFunc(token+entry.User, isControl), key+".token", "the token or the user contains a line end or another control character; remove it")
		r.unless(!strings.Contains(entry.User, ":"), key+".user", "a user's name must not contain a colon")
		r.unless(entry.Header == "" || registryHeader.MatchString(entry.Header) && !isReservedHeader(entry.Header), key+".header", "%q is not the name of a header for a credential", cut(entry.Header))
		r.unless(entry.Header == "" || entry.User == "", key+".header", "write user or header, not both")
	}
}

// isReservedHeader reports whether a header has a meaning of its own in a request.
func isReservedHeader(name string) bool {
	name = strings.ToLower(name)
	return slices.Contains([]string{"host", "connection", "content-length", "transfer-encoding", "te", "trailer", "upgrade", "expect", "range", "user-agent", "cookie"}, name) ||
		strings.HasPrefix(name, "accept") || strings.HasPrefix(name, "if-")
}

func isControl(c rune) bool { return c < ' ' || c == 0x7f }

// registryURL parses the address of a registry.
func registryURL(text string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSuffix(text, "/"))
	switch {
	case err != nil || u.Scheme != "https" || u.Hostname() == "":
		return nil, fmt.Errorf("%q: write an address such as https://npm.example.org/repository/npm", cut(text))
	case u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.RawPath != "":
		return nil, fmt.Errorf("the address must not contain a user, a query, a fragment or %%: write the credential under token")
	case !registryHost.MatchString(u.Hostname()) || len(u.Hostname()) > 253:
		return nil, fmt.Errorf("%q: write the host's name in lower case, as in its certificate, and neither an IP address nor a pattern", cut(text))
	case u.Port() != "" && (!registryPort.MatchString(u.Port()) || len(u.Port()) == 5 && u.Port() > "65535"):
		return nil, fmt.Errorf("%q: write a port from 1 to 65535", cut(text))
	case u.Path != "" && path.Clean(u.Path) != u.Path:
		return nil, fmt.Errorf("%q: write the path without empty parts, . or ..", cut(text))
	}
	if u.Port() == "443" {
		u.Host = u.Hostname()
	}
	return u, nil
}

// For returns the registries that the VMs of a repository, named as OWNER/NAME, may read from, in the order of their names.
func (g Registries) For(repo string) (list []egress.Registry) {
	return slices.DeleteFunc(g.All(), func(r egress.Registry) bool {
		return !slices.ContainsFunc(g[r.Name].Repositories, func(pattern string) bool { return matches(pattern, repo) })
	})
}

// All returns the registries in the order of their names.
func (g Registries) All() (list []egress.Registry) {
	for _, name := range slices.Sorted(maps.Keys(g)) {
		u, err := registryURL(g[name].URL)
		if err != nil {
			continue // Load refuses it
		}
		header, value := g[name].credential()
		list = append(list, egress.Registry{Name: name, URL: u, Header: header, Value: value})
	}
	return list
}

// credential returns the header that carries the token.
func (g Registry) credential() (header, value string) {
	token := strings.TrimSpace(g.Token.Reveal())
	switch {
	case g.Header != "":
		return g.Header, token
	case g.User != "":
		return "Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte(g.User+":"+token))
	}
	return "Authorization", "Bearer " + token
}

// Hosts returns the names of the registries' hosts, sorted.
func (g Registries) Hosts() []string {
	var hosts []string
	for _, r := range g.All() {
		hosts = append(hosts, r.URL.Hostname())
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// secrets returns the texts to redact: the tokens, and the values of headers that contain them encoded.
func (g Registries) secrets() (list []string) {
	for _, entry := range g {
		_, value := entry.credential()
		_, encoded, _ := strings.Cut(value, " ")
		list = append(list, strings.TrimSpace(entry.Token.Reveal()), encoded)
	}
	return list
}
