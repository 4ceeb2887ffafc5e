package simhetzner

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

var (
	labelValue = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)
	labelName  = regexp.MustCompile(`^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)
	hostname   = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*$`)
)

// checkLabels returns a copy of the requested labels; an empty map for none, not nil.
func checkLabels(labels *map[string]string) (map[string]string, error) {
	if labels == nil || *labels == nil {
		return map[string]string{}, nil
	}
	for key, value := range *labels {
		if !labelName.MatchString(key) || strings.HasPrefix(key, "hetzner.cloud/") {
			return nil, newFieldError("labels", "key %q is not allowed", key)
		}
		if value != "" && !labelValue.MatchString(value) {
			return nil, newFieldError("labels", "value %q of %q is not allowed", value, key)
		}
	}
	return maps.Clone(*labels), nil
}

// term is one condition of a label selector.
type term struct {
	key    string
	values []string // empty: only tests the presence of the key
	not    bool
}

type selector []term

// inSet matches a condition on a set of values.
var inSet = regexp.MustCompile(`^(\S+)\s+(in|notin)\s*\(([^()]*)\)$`)

// parseSelector parses a label selector: k, !k, k=v, k==v, k!=v, k in (a,b), k notin (a,b).
func parseSelector(text string) (selector, error) {
	var sel selector
	for _, part := range splitSelector(text) {
		part = strings.TrimSpace(part)
		t := term{key: part}
		if m := inSet.FindStringSubmatch(part); m != nil {
			t = term{key: m[1], not: m[2] == "notin"}
			for _, v := range strings.Split(m[3], ",") {
				t.values = append(t.values, strings.TrimSpace(v))
			}
		} else if key, value, ok := strings.Cut(part, "!="); ok {
			t = term{key: key, values: []string{value}, not: true}
		} else if key, value, ok := strings.Cut(part, "="); ok {
			t = term{key: key, values: []string{strings.TrimPrefix(value, "=")}}
		} else if key, ok := strings.CutPrefix(part, "!"); ok {
			t = term{key: key, not: true}
		}
		t.key = strings.TrimSpace(t.key)
		if !labelName.MatchString(t.key) {
			return nil, newFieldError("label_selector", "%q is no condition", part)
		}
		for i, v := range t.values {
			if t.values[i] = strings.TrimSpace(v); t.values[i] != "" && !labelValue.MatchString(t.values[i]) {
				return nil, newFieldError("label_selector", "%q is no value", v)
			}
		}
		sel = append(sel, t)
	}
	return sel, nil
}

// splitSelector splits at the commas outside of parentheses.
func splitSelector(text string) []string {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	var parts []string
	depth, from := 0, 0
	for i, r := range text {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				parts = append(parts, text[from:i])
				from = i + 1
			}
		}
	}
	return append(parts, text[from:])
}

func (sel selector) matches(labels map[string]string) bool {
	for _, t := range sel {
		value, has := labels[t.key]
		if len(t.values) > 0 {
			has = has && slices.Contains(t.values, value)
		}
		if has == t.not {
			return false
		}
	}
	return true
}
