package shellrules

import (
	"path"
	"slices"
	"strings"
)

// shells are programs that run a text given with -c.
func shells() []string { return []string{"sh", "bash", "dash", "ash", "zsh", "ksh"} }

// builtins are the shell's own commands that run no other one.
func builtins() []string {
	return []string{
		":", "true", "false", "test", "[", "echo", "printf", "cd", "pwd", "pushd", "popd", "dirs", "export", "unset", "set", "shift", "read",
		"return", "exit", "break", "continue", "wait", "type", "hash", "umask", "local", "declare", "typeset", "readonly", "let", "getopts",
		"shopt", "ulimit", "jobs", "kill", "mapfile", "readarray", "times",
	}
}

// starter is a command that starts another one: after its options, Skip further words and assignments.
type starter struct {
	values string // its options that have a value as the next word, with blanks between and around them
	skip   int
}

// starters are commands that do nothing but start another one, by name.
func starters() map[string]starter {
	return map[string]starter{
		"env": {values: " -u --unset -C --chdir "}, "nohup": {}, "setsid": {}, "command": {}, "exec": {values: " -a "}, "builtin": {},
		"nice": {values: " -n --adjustment "}, "ionice": {values: " -c -n -p "}, "stdbuf": {values: " -i -o -e "},
		"timeout": {values: " -k --kill-after -s --signal ", skip: 1}, "time": {values: " -f -o "}, "busybox": {}, "flock": {values: " -w -E ", skip: 1},
		"xargs": {values: " -n -I -P -L -d -s -a -E --max-args --replace --max-procs --delimiter --arg-file "},
		"sudo":  {values: " -u -g -h -p -C -D -R -T --user --group "}, "doas": {values: " -u -C "},
	}
}

// started are the commands that a command starts. opened says that starting them is all it does.
func started(words []string) (inner [][]string, opened bool) {
	name := path.Base(words[0])
	if name == "find" || name == "fd" {
		return found(words), false
	}
	s, ok := starters()[name]
	if !ok {
		return nil, false
	}
	opened = name != "sudo" && name != "doas"
	if name == "command" && len(words) > 1 && strings.HasPrefix(words[1], "-") && strings.ContainsAny(words[1], "vV") {
		return nil, true // it only says where a command is
	}
	rest := skipOptions(words[1:], s.values)
	for len(rest) > 0 && name == "env" && strings.Contains(rest[0], "=") {
		rest = rest[1:]
	}
	rest = rest[min(s.skip, len(rest)):]
	if name == "env" && slices.ContainsFunc(words[1:], splits) {
		return [][]string{{unknown}}, opened
	}
	if len(rest) == 0 {
		return nil, opened
	}
	return [][]string{rest}, opened
}

// splits reports whether a word makes env take a text apart.
func splits(w string) bool {
	return strings.HasPrefix(w, "-S") || strings.HasPrefix(w, "--split-string") || strings.HasPrefix(w, "-vS")
}

// found are the commands that find starts.
func found(words []string) [][]string {
	var inner [][]string
	for i := 0; i < len(words); i++ {
		if !slices.Contains([]string{"-exec", "-execdir", "-ok", "-okdir", "-x", "-X"}, words[i]) {
			continue
		}
		end := i + 1
		for end < len(words) && words[end] != ";" && words[end] != "+" {
			end++
		}
		if end > i+1 {
			inner = append(inner, words[i+1:end])
		}
		i = end
	}
	return inner
}

// optionsWithValue are a command's options before its subcommand that have a value as the next word.
func optionsWithValue(name string) string {
	if path.Base(name) == "git" {
		return " -C -c --git-dir --work-tree --namespace --super-prefix --config-env "
	}
	return ""
}

// skipOptions returns what comes after options, and after the values of those that have one.
func skipOptions(words []string, values string) []string {
	for len(words) > 0 && strings.HasPrefix(words[0], "-") && words[0] != "-" {
		if words[0] == "--" {
			return words[1:]
		}
		n := 1
		if strings.Contains(values, " "+words[0]+" ") {
			n = 2
		}
		words = words[min(n, len(words)):]
	}
	return words
}
