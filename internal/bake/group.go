package bake

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Groups maps the names of repository groups to their base images.
type Groups map[string]Group

// A Group is the base image of some repositories.
type Group struct {
	// Repos are the repositories whose VMs are made from this image, as OWNER/NAME or OWNER/*. Repositories named in
	// full are copied into the image.
	Repos []string `yaml:"repos"`
	// Image is the provider's name of the image to build on; hetzner.image unless set.
	Image string `yaml:"image"`
	// Type is the VM type to build on; unless set, the first available entry of hetzner.candidates. VMs made from the
	// image need at least its disk size, so choose a small one.
	Type string `yaml:"type"`
	// Location is the provider's location to build in; unless set, the cheapest one for the type. VMs there start
	// soonest from the image.
	Location string `yaml:"location"`
	// Script runs as root in bash to install packages, tool chains and the agent program, each in the version you want.
	Script string `yaml:"script"`
	// Warm runs in bash as the agent's user in a checkout of each repository, to fill caches in the user's home.
	Warm string `yaml:"warm"`
	// Timeout limits script and warm, each; 45 minutes unless set.
	Timeout time.Duration `yaml:"timeout"`
	// Every is the interval of automatic rebuilds; with 0 the image is rebuilt only when something above changes.
	Every time.Duration `yaml:"every"`
}

// DefaultTimeout is the default of Group.Timeout.
const DefaultTimeout = 45 * time.Minute

// maxGroups limits the number of groups, since each keeps two images.
const maxGroups = 20

var (
	groupName   = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)
	repoPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]*/(\*|[A-Za-z0-9._-]+)$`)
)

// Problems returns the mistakes in the groups, each with its key below `bake`.
func (g Groups) Problems() (list []string) {
	if len(g) > maxGroups {
		list = append(list, fmt.Sprintf("%d groups; at most %d", len(g), maxGroups))
	}
	owner := map[string]string{} // pattern → group
	for _, name := range slices.Sorted(maps.Keys(g)) {
		group, say := g[name], func(key, format string, args ...any) {
			list = append(list, name+key+": "+fmt.Sprintf(format, args...))
		}
		if !groupName.MatchString(name) {
			say("", "a name has up to 32 lower-case letters, digits and inner hyphens")
		}
		if len(group.Repos) == 0 {
			say(".repos", "write at least one repository, as OWNER/NAME or OWNER/*")
		}
		for i, repo := range group.Repos {
			key := fmt.Sprintf(".repos[%d]", i)
			if !repoPattern.MatchString(repo) {
				say(key, "%q: write OWNER/NAME or OWNER/*", repo)
			} else if other, taken := owner[strings.ToLower(repo)]; taken {
				say(key, "%s is also in the group %s", repo, other)
			}
			owner[strings.ToLower(repo)] = name
		}
		if group.Timeout < 0 {
			say(".timeout", "must be above zero")
		}
		if group.Every < 0 || group.Every > 0 && group.Every < time.Hour {
			say(".every", "write 0 or at least an hour")
		}
	}
	return list
}

// Of returns the group of a repository: the one that names it in full, else the one that names its owner.
func (g Groups) Of(repo string) (name string, ok bool) {
	repo = strings.ToLower(repo)
	for _, want := range []string{repo, path.Dir(repo) + "/*"} {
		for _, name := range slices.Sorted(maps.Keys(g)) {
			if slices.ContainsFunc(g[name].Repos, func(r string) bool { return strings.ToLower(r) == want }) {
				return name, true
			}
		}
	}
	return "", false
}

// namedRepos returns the repositories that are named in full.
func (g Group) namedRepos() []string {
	return slices.DeleteFunc(slices.Clone(g.Repos), func(r string) bool { return strings.HasSuffix(r, "/*") })
}

// digest returns a hash of the recipe.
func (g Group) digest() string {
	data, err := json.Marshal([]any{g.namedRepos(), g.Image, g.Type, g.Location, g.Script, g.Warm})
	if err != nil {
		panic(err) // strings always encode
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}
