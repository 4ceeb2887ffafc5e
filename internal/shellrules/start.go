package shellrules

import (
	"path"
	"slices"
	"strings"
)

// shells returns the programs that run a script passed with -c.
func shells() []string { return []string{"sh", "bash", "dash", "ash", "zsh", "ksh"} }

// builtins returns the shell builtins that start no other command.
func builtins() []string {
	return []string{
		":", "true", "false", "test", "[", "echo", "printf", "cd", "pwd", "pushd", "popd", "dirs", "export", "unset", "set", "shift", "read",
		"return", "exit", "break", "continue", "wait", "type", "hash", "umask", "local", "declare", "typeset", "readonly", "let", "getopts",
		"shopt", "ulimit", "jobs", "kill", "mapfile", "readarray", "times",
	}
}

// starter describes a command that starts another one. The started command follows after its options and skip further
// words.
type starter struct {
	values string // options whose value is the next word, each surrounded by spaces
	skip   int
}

// startCommands returns the commands that only start another command, by name.
func startCommands() map[string]starter {
	return map[string]starter{
		"env": {values: " -u --unset -C --chdir "}, "nohup": {}, "setsid": {}, "command": {}, "exec": {values: " -a "}, "builtin": {},
		"nice": {values: " -n --adjustment "}, "ionice": {values: " -c -n -p "}, "stdbuf": {values: " -i -o -e "},
		"timeout": {values: " -k --kill-after -s --signal ", skip: 1}, "time": {values: " -f -o "}, "busybox": {}, "flock": {values: " -w -E ", skip: 1},
		"xargs": {values: " -n -I -P -L -d -s -a -E --max-args --replace --max-procs --delimiter --arg-file "},
		"sudo":  {values: " -u -g -h -p -C -D -R -T --user --group "}, "doas": {values: " -u -C "},
	}
}

// innerCommands returns the commands that a command starts. opened reports that the command does nothing else.
func innerCommands(words []string) (inner [][]string, opened bool) {
	name := path.Base(words[0])
	if name == "find" || name == "fd" {
		return findExecCommands(words), false
	}
	s, ok := startCommands()[name]
	if !ok {
		return nil, false
	}
	opened = name != "sudo" && name != "doas"
	if name == "command" && len(words) > 1 && strings.HasPrefix(words[1], "-") && strings.ContainsAny(words[1], "vV") {
		return nil, true // it only looks up the command
	}
	rest := skipOptions(words[1:], s.values)
	for len(rest) > 0 && name == "env" && strings.Contains(rest[0], "=") {
		rest = rest[1:]
	}
	rest = rest[min(s.skip, len(rest)):]
	if name == "env" && slices.ContainsFunc(words[1:], splitsString) {
		return [][]string{{unknown}}, opened
	}
	if len(rest) == 0 {
		return nil, opened
	}
	return [][]string{rest}, opened
}

// splitsString reports whether an option makes env split a string into words.
func splitsString(w string) bool {
	return strings.HasPrefix(w, "-S") || strings.HasPrefix(w, "--split-string") || strings.HasPrefix(w, "-vS")
}

// findExecCommands returns the commands that find starts.
func findExecCommands(words []string) [][]string {
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

// optionsWithValue returns the options before a command's subcommand whose value is the next word.
func optionsWithValue(name string) string {
	if path.Base(name) == "git" {
		return " -C -c --git-dir --work-tree --namespace --super-prefix --config-env "
	}
	return ""
}

// skipOptions returns the words after the options and their values.
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
