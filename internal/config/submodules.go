package config

import (
	"path"
	"slices"
	"strings"
)

// Submodules is by repository what else is read for it. It is for the operator to say, not for the repository:
// else whoever may write to one could read any other. Where the App is not installed, what is public is read.
type Submodules map[string][]string

func (s Submodules) problems(r *report) {
	named := func(text string) bool { return fullName.MatchString(strings.ReplaceAll(text, "*", "x")) }
	for of, list := range s {
		key := "submodules." + of
		r.unless(named(of), key, "%q: write OWNER/REPO", of)
		for _, repo := range list {
			r.unless(named(repo), key, "%q: write OWNER/REPO", repo)
		}
	}
}

// Allow reports whether agents at work on one repository may read another, both named as OWNER/NAME.
func (s Submodules) Allow(of, repo string) bool {
	return slices.ContainsFunc(s.Of(of), func(pattern string) bool { return matches(pattern, repo) })
}

// Of lists what agents at work on a repository may read besides it, as patterns.
func (s Submodules) Of(repo string) []string {
	var out []string
	for pattern, list := range s {
		if matches(pattern, repo) {
			out = append(out, list...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// matches compares names as GitHub does, whatever their case.
func matches(pattern, name string) bool {
	ok, err := path.Match(strings.ToLower(pattern), strings.ToLower(name))
	return ok && err == nil
}
