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

// Groups are base images that are baked, by the name of the group of repositories that each is for.
type Groups map[string]Group

// Group is a base image for some repositories.
type Group struct {
	// Repos are the repositories whose VMs are made from it, as OWNER/NAME or OWNER/*. Of each that is
	// named in full a copy is put into the image.
	Repos []string `yaml:"repos"`
	// Image is what it is baked on, the provider's name of it; hetzner.image unless set.
	Image string `yaml:"image"`
	// Type is the kind of VM it is baked in, the first of hetzner.candidates that can be had unless set. Its disk is
	// the least that a VM made from the image needs: take a small one.
	Type string `yaml:"type"`
	// Location is where it is baked, the cheapest place of the type unless set. VMs there are made from it soonest.
	Location string `yaml:"location"`
	// Script is run as root by bash: packages, tool chains, the agent's program, each in the version you want.
	Script string `yaml:"script"`
	// Warm is run by bash as the agent's user in a checkout of each repository, to fill caches in its home.
	Warm string `yaml:"warm"`
	// Timeout bounds script and warm, each; 45 minutes unless set.
	Timeout time.Duration `yaml:"timeout"`
	// Every is how often it is baked anew by itself; 0 is only when something above has changed.
	Every time.Duration `yaml:"every"`
}

// DefaultTimeout is Group.Timeout unless it is set.
const DefaultTimeout = 45 * time.Minute

// maxGroups bounds the groups, since each keeps two images.
const maxGroups = 20

var (
	groupName   = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)
	repoPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]*/(\*|[A-Za-z0-9._-]+)$`)
)

// Problems says what is wrong with the groups, each with its key below `bake`.
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
				say(key, "%s is in the group %s, too", repo, other)
			}
			owner[strings.ToLower(repo)] = name
		}
		if group.Timeout < 0 {
			say(".timeout", "has to be above zero")
		}
		if group.Every < 0 || group.Every > 0 && group.Every < time.Hour {
			say(".every", "write 0, or an hour at least")
		}
	}
	return list
}

// Of returns the group of a repository, which is the one that names it in full, else the one that
// names its owner.
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

// named are the repositories that are named in full.
func (g Group) named() []string {
	return slices.DeleteFunc(slices.Clone(g.Repos), func(r string) bool { return strings.HasSuffix(r, "/*") })
}

// digest tells two recipes apart.
func (g Group) digest() string {
	data, err := json.Marshal([]any{g.named(), g.Image, g.Type, g.Location, g.Script, g.Warm})
	if err != nil {
		panic(err) // texts always encode
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}
