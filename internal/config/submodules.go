package config

import (
	"path"
	"slices"
	"strings"
)

// Submodules lists, by repository, the other repositories that its agents may read. Only the operator can set it:
// otherwise everybody with write access to one repository could read all others. Public repositories can be read even if
// the App is not installed there.
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

// Of returns the patterns of repositories that agents working on a repository may also read.
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

// matches compares names without regard to case, as GitHub does.
func matches(pattern, name string) bool {
	ok, err := path.Match(strings.ToLower(pattern), strings.ToLower(name))
	return ok && err == nil
}
