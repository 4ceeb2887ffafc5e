package naming

import (
	"regexp"
	"strings"
)

// Branches tells the branches that a template names for one issue.
type Branches struct {
	// Prefix is what the names of all of them begin with; it may be empty.
	Prefix string
	own    string
	form   *regexp.Regexp
}

// Has reports whether a branch is one of them.
func (b Branches) Has(name string) bool {
	return name == b.own || b.form != nil && b.form.MatchString(name)
}

// BranchesOf returns the branches of an issue by a template: whatever stands for {slug} and {task}, if the template has
// the number or key, else those with exactly its own values. An issue's number or key is never part of a
// longer one: errand/12-x is not a branch of issue 1.
func BranchesOf(template string, v Values) (Branches, error) {
	own, err := Expand(template, v)
	if err != nil {
		return Branches{}, err
	}
	template, v = strings.ToValidUTF8(template, ""), v.oneLine()
	b := Branches{own: own, Prefix: own}
	if !strings.Contains(template, "{number}") && (v.Key == "" || !strings.Contains(template, "{key}")) {
		return b, nil
	}
	var pattern, prefix strings.Builder
	free := false
	parts := splitTemplate(template, v)
	for i, p := range parts {
		if p == "{slug}" || p == "{task}" {
			free = true
			pattern.WriteString(wildcard(neighbor(parts, v, i, -1), neighbor(parts, v, i, 1)))
			continue
		}
		pattern.WriteString(regexp.QuoteMeta(valueOf(p, v)))
		if !free {
			prefix.WriteString(valueOf(p, v))
		}
	}
	b.Prefix, b.form = prefix.String(), regexp.MustCompile("^"+pattern.String()+"$")
	return b, nil
}

// neighbor is the key or number that stands directly beside the part i, empty if something else does.
func neighbor(parts []string, v Values, i, step int) string {
	for i += step; i >= 0 && i < len(parts); i += step {
		if parts[i] == "{key}" || parts[i] == "{number}" {
			return valueOf(parts[i], v)
		}
		if parts[i] != "" {
			break
		}
	}
	return ""
}

// wildcard matches any text that does not go on with a key or number which stands directly before or after it.
func wildcard(before, after string) string {
	first, last := "", ""
	if before != "" {
		first = otherThan(before[len(before)-1])
	}
	if after != "" {
		last = otherThan(after[0])
	}
	switch {
	case first == "" && last == "":
		return `.+`
	case first == last:
		return first + `(?:.*` + last + `)?`
	}
	return first + `.*` + last
}

// otherThan matches a character that is no digit where c is one, else none that is a letter.
func otherThan(c byte) string {
	if c >= '0' && c <= '9' {
		return `[^0-9]`
	}
	return `[^A-Za-z]`
}
