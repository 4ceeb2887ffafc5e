package egress

import (
	"slices"
	"strings"
)

// A Group is a named set of hosts for allow-lists. The proxy does not see requests inside TLS: an agent with an account
// at one of the hosts can publish there.
type Group struct {
	Name  string
	About string // short description
	Hosts []string
}

// Groups returns all groups by name.
func Groups() []Group {
	return []Group{
		{"containers", "Images: Docker Hub, GitHub, Quay, Google, Microsoft, Amazon's public gallery; with the hosts that serve their layers", []string{
			"registry-1.docker.io", "auth.docker.io", "production.cloudflare.docker.com", "production.cloudfront.docker.com",
			"docker-images-prod.6aa30f8b08e16409b46e0173d6de2f56.r2.cloudflarestorage.com",
			"ghcr.io", "pkg-containers.githubusercontent.com",
			"quay.io", "*.quay.io",
			"gcr.io", "mirror.gcr.io",
			"mcr.microsoft.com", "*.data.mcr.microsoft.com",
			"public.ecr.aws", "d2glxqk2uabbnd.cloudfront.net", "d5l0dvt14r5h8.cloudfront.net",
		}},
		{"debian", "Packages of Debian and Ubuntu", []string{"deb.debian.org", "security.debian.org", "archive.ubuntu.com", "security.ubuntu.com"}},
		{"go", "Modules and tool chains of Go", []string{"proxy.golang.org", "sum.golang.org"}},
		{"java", "Maven and Gradle", []string{"repo.maven.apache.org", "repo1.maven.org", "plugins.gradle.org", "services.gradle.org"}},
		{"npm", "npm and yarn", []string{"registry.npmjs.org", "registry.yarnpkg.com"}},
		{"python", "PyPI", []string{"pypi.org", "files.pythonhosted.org"}},
		{"ruby", "RubyGems", []string{"rubygems.org", "index.rubygems.org"}},
		{"rust", "Crates", []string{"index.crates.io", "static.crates.io"}},
	}
}

// Registries returns the default allow-list: the package registries of common languages. Container registries are not
// in it.
func Registries() []string { return []string{"debian", "go", "java", "npm", "python", "ruby", "rust"} }

// Hosts replaces the groups in an allow-list by their hosts.
func Hosts(entries []string) []string {
	var out []string
	for _, entry := range entries {
		if g, ok := groupByName(entry); ok {
			out = append(out, g.Hosts...)
			continue
		}
		out = append(out, entry)
	}
	return out
}

func groupByName(name string) (Group, bool) {
	if strings.ContainsAny(name, ".:") { // a host: most entries are hosts
		return Group{}, false
	}
	groups := Groups()
	if i := slices.IndexFunc(groups, func(g Group) bool { return g.Name == name }); i >= 0 {
		return groups[i], true
	}
	return Group{}, false
}

func groupNames() string {
	var names []string
	for _, g := range Groups() {
		names = append(names, g.Name)
	}
	return strings.Join(names, ", ")
}

// allowEntryFor returns the allow-list entry that would permit a host.
func allowEntryFor(host, port string) string {
	for _, g := range Groups() {
		if slices.ContainsFunc(g.Hosts, func(entry string) bool { return matches(entry, host, port) }) {
			return "it, or the group " + g.Name + ","
		}
	}
	return "it"
}
