package gemini

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/errand-bot/errand/internal/agent/cli"
)

// rulePattern matches a deny rule: a tool, and optionally its argument.
var rulePattern = regexp.MustCompile(`^([A-Za-z_]+)(?:\((.+)\))?$`)

// policyFile returns the policy file with the denied calls, and denies changes of attachments. Rules have the common form,
// such as Bash(git push:*) or Edit(.github/**), or use the program's own tool names.
func policyFile(deny []string, attachments string) ([]byte, error) {
	var b strings.Builder
	b.WriteString("# What this run may not call.\n")
	if attachments != "" {
		for _, tool := range toolsOf("Edit") {
			fmt.Fprintf(&b, "\n[[rule]]\ntoolName = %s\nargsPattern = %s\ndecision = \"deny\"\npriority = 900\n",
				cli.TOMLString(tool), cli.TOMLString(attachmentPattern(attachments)))
		}
	}
	for _, rule := range deny {
		m := rulePattern.FindStringSubmatch(rule)
		if m == nil || strings.ContainsAny(rule, "\n\r\x00") {
			return nil, fmt.Errorf("%q is not a deny rule", rule)
		}
		for _, tool := range toolsOf(m[1]) {
			fmt.Fprintf(&b, "\n[[rule]]\ntoolName = %s\n", cli.TOMLString(tool))
			switch arg := m[2]; {
			case arg == "" || arg == "*":
			case tool == "run_shell_command":
				fmt.Fprintf(&b, "commandPrefix = %s\n", cli.TOMLString(strings.TrimRight(strings.TrimSuffix(arg, ":*"), " *")))
			default:
				fmt.Fprintf(&b, "argsPattern = %s\n", cli.TOMLString(pathPattern(arg)))
			}
			b.WriteString("decision = \"deny\"\npriority = 900\n")
		}
	}
	return []byte(b.String()), nil
}

// toolsOf returns the program's tools for a tool name in a rule.
func toolsOf(name string) []string {
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

// attachmentPattern returns a pattern that finds a path of an attachment in a call's JSON arguments: an absolute path, or one
// relative to the checkout, which is next to their directory.
func attachmentPattern(dir string) string {
	return `"file_path":"(?:` + regexp.QuoteMeta(dir) + `|[^"]*\.\./` + regexp.QuoteMeta(path.Base(dir)) + `)/`
}

// pathPattern returns a pattern that finds, in a call's JSON arguments, a path that matches the glob, relative to the
// checkout or absolute. The program silently drops a rule whose pattern has a repetition after a bracket.
func pathPattern(glob string) string {
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
