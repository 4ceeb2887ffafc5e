package agentloop

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/errand-bot/errand/internal/agentloop/wire"
)

// rule refuses calls of one tool: all of them, commands that begin with a prefix (bash), or paths that
// fit a pattern. It keeps a model from mistakes; it is no boundary.
type rule struct{ tool, pattern string }

func (r rule) String() string {
	if r.pattern == "" {
		return r.tool
	}
	return r.tool + "(" + r.pattern + ")"
}

// parseRules reads NAME and NAME(PATTERN).
func parseRules(list []string) ([]rule, error) {
	var rules []rule
	for _, text := range list {
		name, rest, has := strings.Cut(text, "(")
		pattern, closed := strings.CutSuffix(rest, ")")
		if !slices.Contains(wire.Tools(), name) || has && (!closed || pattern == "") {
			return nil, fmt.Errorf("%q is no deny rule: write TOOL or TOOL(PATTERN), for one of %s", text, strings.Join(wire.Tools(), ", "))
		}
		if name != wire.ToolBash && !doublestar.ValidatePattern(pattern) {
			return nil, fmt.Errorf("%q: the pattern cannot be read", text)
		}
		rules = append(rules, rule{name, pattern})
	}
	return rules, nil
}

// forbids reports whether the rule is against a call; what is the command, or the path in the checkout.
func (r rule) forbids(tool, what string) bool {
	switch {
	case r.tool != tool:
		return false
	case r.pattern == "":
		return true
	case tool == wire.ToolBash:
		return strings.HasPrefix(strings.TrimSpace(what), strings.TrimSuffix(strings.TrimSuffix(r.pattern, "*"), ":"))
	}
	ok, _ := doublestar.Match(r.pattern, what) // the pattern was validated
	return ok
}
