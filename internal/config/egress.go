package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/egress"
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

// For returns the hosts that the VMs of a repository, named as OWNER/NAME, may reach.
func (e Egress) For(repo string) egress.Policy {
	allow := e.Allow
	for name, hosts := range e.Repositories {
		if strings.EqualFold(name, repo) {
			allow = slices.Concat(allow, hosts)
		}
	}
	return egress.Policy{Allow: egress.Hosts(allow)}
}
