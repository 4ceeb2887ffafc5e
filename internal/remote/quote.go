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

// Quote renders argv as one line for a POSIX shell that yields exactly argv
// again, whatever the words contain. The only thing it cannot carry is NUL.
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

// line is the command line that the VM's shell gets. The environment goes into
// it, because sshd accepts no variables by default; exec makes the command take
// the shell's place, so that signals reach it and its arguments stay its own.
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
