package agentloop

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// What rules are about: commands, changes of files, and looks at them.
const (
	ruleBash = "Bash"
	ruleEdit = "Edit"
	ruleRead = "Read"
)

// rule refuses all of its kind, commands that begin with words, or paths that fit a pattern. It keeps a
// model from mistakes; it is no boundary.
type rule struct{ kind, pattern string }

func (r rule) String() string {
	if r.pattern == "" {
		return r.kind
	}
	return r.kind + "(" + r.pattern + ")"
}

// parseRules reads KIND and KIND(PATTERN), as all agents' rules are written. What is about tools that the
// loop does not have has no effect.
func parseRules(list []string) ([]rule, error) {
	var rules []rule
	for _, text := range list {
		kind, rest, has := strings.Cut(text, "(")
		pattern, closed := strings.CutSuffix(rest, ")")
		if has && (!closed || pattern == "") {
			return nil, fmt.Errorf("%q is no rule: write KIND or KIND(PATTERN)", text)
		}
		if !slices.Contains([]string{ruleBash, ruleEdit, ruleRead}, kind) {
			continue
		}
		if kind != ruleBash && !doublestar.ValidatePattern(pattern) {
			return nil, fmt.Errorf("%q: the pattern cannot be read", text)
		}
		rules = append(rules, rule{kind, pattern})
	}
	return rules, nil
}

// forbids reports whether the rule is against a call; what is the command, or the path in the checkout.
func (r rule) forbids(kind, what string) bool {
	switch {
	case r.kind != kind:
		return false
	case r.pattern == "":
		return true
	case kind == ruleBash:
		return false // package shellrules reads command lines
	}
	ok, _ := doublestar.Match(r.pattern, what) // the pattern was validated
	return ok
}
