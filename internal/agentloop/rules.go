package agentloop

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// The subjects of rules: commands, file changes, and file reads.
const (
	ruleBash = "Bash"
	ruleEdit = "Edit"
	ruleRead = "Read"
)

// rule denies all calls of its kind, commands with a prefix, or paths that match a pattern. It prevents mistakes of a
// model and is not a security boundary.
type rule struct{ kind, pattern string }

func (r rule) String() string {
	if r.pattern == "" {
		return r.kind
	}
	return r.kind + "(" + r.pattern + ")"
}

// parseRules parses rules in the common form of all agents, KIND and KIND(PATTERN). Rules about tools that the loop
// does not have are ignored.
func parseRules(list []string) ([]rule, error) {
	var rules []rule
	for _, text := range list {
		kind, rest, has := strings.Cut(text, "(")
		pattern, closed := strings.CutSuffix(rest, ")")
		if has && (!closed || pattern == "") {
			return nil, fmt.Errorf("%q is not a rule: write KIND or KIND(PATTERN)", text)
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

// matches reports whether the rule denies a call; what is the command, or the path in the checkout.
func (r rule) matches(kind, what string) bool {
	switch {
	case r.kind != kind:
		return false
	case r.pattern == "":
		return true
	case kind == ruleBash:
		return false // package shellrules judges command lines
	}
	ok, _ := doublestar.Match(r.pattern, what) // the pattern was validated
	return ok
}
