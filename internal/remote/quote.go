package remote

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

var (
	plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+:,./-][A-Za-z0-9_@%+:,./=-]*$`)
	envName   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// Quote formats argv as one line that a POSIX shell parses into exactly argv again, for any content except NUL.
func Quote(argv ...string) string {
	words := make([]string, len(argv))
	for i, word := range argv {
		assignment := i == 0 && strings.Contains(word, "=")
		if plainWord.MatchString(word) && !assignment {
			words[i] = word
			continue
		}
		words[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return strings.Join(words, " ")
}

// line returns the command line for the VM's shell. It contains the environment, because sshd accepts no variables by
// default; exec replaces the shell by the command, so that signals reach it.
func (c Cmd) line() (string, error) {
	if len(c.Argv) == 0 {
		return "", fmt.Errorf("empty command")
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		if !envName.MatchString(name) {
			return "", fmt.Errorf("environment variable %q: not a name", name)
		}
		fmt.Fprintf(&b, "export %s=%s; ", name, Quote(c.Env[name]))
	}
	if c.Dir != "" {
		fmt.Fprintf(&b, "cd -- %s && ", Quote(c.Dir))
	}
	b.WriteString("exec ")
	b.WriteString(Quote(c.Argv...))
	if strings.ContainsRune(b.String(), 0) {
		return "", fmt.Errorf("command %s: contains NUL", c.Argv[0])
	}
	return b.String(), nil
}
