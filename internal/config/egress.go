package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/egress"
)

// Egress is what VMs reach besides the model and their repository: by name, at the ports 443 and 80 unless
// another is named, through a proxy that writes every request down. Where a VM has a network of its own
// that is open, this bounds nothing.
type Egress struct {
	// Allow are hosts, such as proxy.example.org, or *.example.org for all below it, and groups of them: containers
	// (registries of images), debian, go, java, npm, python, ruby, rust. All groups but containers unless set.
	Allow []string `yaml:"allow"`
	// Repositories adds hosts and groups for some repositories: {OWNER/REPO: [HOST, containers]}.
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

// For returns what the VMs of a repository, named as OWNER/NAME, may reach.
func (e Egress) For(repo string) egress.Policy {
	allow := e.Allow
	for name, hosts := range e.Repositories {
		if strings.EqualFold(name, repo) {
			allow = slices.Concat(allow, hosts)
		}
	}
	return egress.Policy{Allow: egress.Hosts(allow)}
}
