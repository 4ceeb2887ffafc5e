package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/shellrules"
	"github.com/errand-bot/errand/state/settings"
)

// Tools restricts which commands agents may run, enforced by the agents' own programs. This is not a security boundary,
// because a command can be written in many ways; the push gate, the proxy and the gateway check everything that leaves a
// VM.
type Tools struct {
	// Shell lists the command prefixes that agents may run in a shell: [git, go, make, npm run]. Commands that read
	// files, text or system information, or that create, move and delete files, are always allowed. By default the list
	// is git, the tools for which the base branch has files in any folder (go for go.mod, npm for package.json), and the
	// commands of setup and check. The word all allows every command; a repository may use it only with the operator's
	// permission.
	Shell ShellList `yaml:"shell"`
	// Deny lists command prefixes that agents may not run, such as "terraform apply". It takes precedence over shell.
	// Commands that change git's configuration or push targets, sudo, and changes of protected paths are always denied.
	Deny []string `yaml:"deny"`
}

// OperatorTools are the operator's restrictions on commands.
type OperatorTools struct {
	// Shell lists the command prefixes that agents may run in a shell if a repository's own file has no list. The word
	// all allows every command and lets those files say all. If empty, it is git and the tools that a repository is
	// built with.
	Shell ShellList `yaml:"shell"`
	// Repositories sets a different list for single repositories: {OWNER/REPO: all}.
	Repositories map[string]ShellList `yaml:"repositories"`
	// Deny lists command prefixes that agents may not run in any repository.
	Deny []string `yaml:"deny"`
}

// ShellList is a list of command prefixes, or the word all.
type ShellList []string

// allShell allows every command.
const allShell = "all"

// UnmarshalYAML accepts a single word as a list of one.
func (l *ShellList) UnmarshalYAML(unmarshal func(any) error) error {
	var word string
	if err := unmarshal(&word); err == nil {
		*l = ShellList{word}
		return nil
	}
	var list []string
	if err := unmarshal(&list); err != nil {
		return err
	}
	*l = append(ShellList{}, list...)
	return nil
}

// shell converts the list for the state; without a list errand detects the prefixes.
func (l ShellList) shell() settings.Shell {
	switch {
	case l == nil:
		return settings.Shell{}
	case slices.Equal(l, ShellList{allShell}):
		return settings.Shell{All: true, Set: true}
	}
	return settings.Shell{Set: true, Commands: slices.Clone(l)}
}

// For returns the command prefixes that the operator allows in a repository, named as OWNER/NAME. An empty list means
// that errand detects them.
func (t OperatorTools) For(repo string) settings.Shell {
	list := t.Shell
	for name, other := range t.Repositories {
		if strings.EqualFold(name, repo) {
			list = other
		}
	}
	if len(list) == 0 {
		return settings.Shell{}
	}
	return list.shell()
}

// The limits on lists of commands.
const (
	maxDenied    = 50
	maxShell     = 100
	maxDenyChars = 200
)

func (t Tools) problems(r *report, key string) {
	t.Shell.problems(r, key+".shell")
	denyProblems(r, key+".deny", t.Deny)
}

func (t OperatorTools) problems(r *report, key string) {
	t.Shell.problems(r, key+".shell")
	denyProblems(r, key+".deny", t.Deny)
	for repo, list := range t.Repositories {
		at := key + ".repositories." + repo
		r.unless(fullName.MatchString(repo), at, "%q: write OWNER/REPO", cut(repo))
		list.problems(r, at)
	}
}

func denyProblems(r *report, key string, list []string) {
	r.unless(len(list) <= maxDenied, key, "%d commands are too many; write at most %d", len(list), maxDenied)
	for i, c := range list {
		plain := strings.TrimSpace(c) == c && c != "" && len(c) <= maxDenyChars && !strings.ContainsAny(c, "()*:\"'\\\n\r\t\x00")
		r.unless(plain, fmt.Sprintf("%s[%d]", key, i), "%q: write the beginning of the command, such as terraform apply, without quotes, brackets and *", cut(c))
	}
}

func (l ShellList) problems(r *report, key string) {
	if l.shell().All {
		return
	}
	r.unless(len(l) <= maxShell, key, "%d commands are too many; write at most %d, or all", len(l), maxShell)
	for i, c := range l {
		at := fmt.Sprintf("%s[%d]", key, i)
		r.unless(c != allShell, at, "all cannot be in a list: write shell: all, or only the commands that agents may run")
		r.unless(shellrules.IsPlain(c) && len(c) <= maxDenyChars, at, "%q: write the beginning of the command, such as go or npm run, without quotes, brackets and *", cut(c))
	}
}
