package agent

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// geminiRule is one call to refuse, as deny rules are written: a tool, and what it is called with.
var geminiRule = regexp.MustCompile(`^([A-Za-z_]+)(?:\((.+)\))?$`)

// geminiPolicy is the file of rules: the calls to refuse. Rules are written as everywhere, such as
// Bash(git push:*) or Edit(.github/**), or with the program's own names of tools.
func geminiPolicy(deny []string) ([]byte, error) {
	var b strings.Builder
	b.WriteString("# What this run may not call.\n")
	for _, rule := range deny {
		m := geminiRule.FindStringSubmatch(rule)
		if m == nil || strings.ContainsAny(rule, "\n\r\x00") {
			return nil, fmt.Errorf("%q is no deny rule", rule)
		}
		for _, tool := range geminiToolsOf(m[1]) {
			fmt.Fprintf(&b, "\n[[rule]]\ntoolName = %s\n", tomlString(tool))
			switch arg := m[2]; {
			case arg == "" || arg == "*":
			case tool == "run_shell_command":
				fmt.Fprintf(&b, "commandPrefix = %s\n", tomlString(strings.TrimRight(strings.TrimSuffix(arg, ":*"), " *")))
			default:
				fmt.Fprintf(&b, "argsPattern = %s\n", tomlString(geminiPath(arg)))
			}
			b.WriteString("decision = \"deny\"\npriority = 900\n")
		}
	}
	return []byte(b.String()), nil
}

// geminiToolsOf returns the program's tools of that name.
func geminiToolsOf(name string) []string {
	switch name {
	case "Bash":
		return []string{"run_shell_command"}
	case "Edit":
		return []string{"replace", "write_file"}
	case "Write":
		return []string{"write_file"}
	case "Read":
		return []string{"read_file"}
	case "Glob":
		return []string{"glob"}
	case "Grep":
		return []string{"grep_search"}
	}
	return []string{name}
}

// geminiPath is a pattern over a call's arguments, as JSON, that finds a path which the glob fits,
// written from the checkout or from the root. The program drops a rule whose pattern has a repetition
// behind a bracket, and says nothing.
func geminiPath(glob string) string {
	glob = strings.TrimPrefix(strings.TrimPrefix(glob, "./"), "/")
	var b strings.Builder
	for len(glob) > 0 {
		switch {
		case strings.HasPrefix(glob, "**"):
			b.WriteString(`[^"]*`)
			glob = strings.TrimPrefix(glob, "**")
		case glob[0] == '*':
			b.WriteString(`[^"/]*`)
			glob = glob[1:]
		default:
			b.WriteString(regexp.QuoteMeta(glob[:1]))
			glob = glob[1:]
		}
	}
	return `"file_path":"(?:\./|[^"]*/|)` + b.String() + `"`
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
