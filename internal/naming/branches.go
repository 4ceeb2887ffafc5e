package naming

import (
	"regexp"
	"strings"
)

// Branches recognizes the branches that a template names for one issue.
type Branches struct {
	// Prefix is the common beginning of their names; it may be empty.
	Prefix string
	own    string
	form   *regexp.Regexp
}

// Has reports whether a branch is one of them.
func (b Branches) Has(name string) bool {
	return name == b.own || b.form != nil && b.form.MatchString(name)
}

// BranchesOf returns the branches of an issue. If the template contains the number or key, {slug} and {task} may have any
// value; otherwise the branch has exactly the given values. An issue's number or key is never a part of a longer one:
// errand/12-x is not a branch of issue 1.
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

// neighbor returns the key or number directly before or after part i, or "" if there is another part.
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

// wildcard returns a pattern for any text that does not continue a key or number directly before or after it.
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

// otherThan returns a pattern for a non-digit if c is a digit, and for a non-letter otherwise.
func otherThan(c byte) string {
	if c >= '0' && c <= '9' {
		return `[^0-9]`
	}
	return `[^A-Za-z]`
}
