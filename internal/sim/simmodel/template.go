package simmodel

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"text/template"
)

// funcs returns the functions for templates, in addition to the built-in ones.
//
//	find RE TEXT      the first group of the first match, or the match, or ""
//	findAll RE TEXT   the same of all matches, as a list
//	json VALUE        VALUE as JSON
//	trim, lines, contains, replace OLD NEW TEXT
func funcs() template.FuncMap {
	return template.FuncMap{
		"find":     find,
		"findAll":  findAll,
		"json":     toJSON,
		"trim":     strings.TrimSpace,
		"lines":    func(text string) []string { return strings.Split(strings.TrimRight(text, "\n"), "\n") },
		"contains": func(part, text string) bool { return strings.Contains(text, part) },
		"repeat":   repeat,
		"replace":  func(from, to, text string) string { return strings.ReplaceAll(text, from, to) },
	}
}

// repeat repeats a text, up to a megabyte.
func repeat(n int, text string) string {
	const most = 1 << 20
	return strings.Repeat(text, max(0, min(n, most/max(len(text), 1))))
}

func find(expr, text string) (string, error) {
	all, err := findAll(expr, text)
	if err != nil || len(all) == 0 {
		return "", err
	}
	return all[0], nil
}

func findAll(expr, text string) ([]string, error) {
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, m := range re.FindAllStringSubmatch(text, -1) {
		all = append(all, m[min(1, len(m)-1)])
	}
	return all, nil
}

func toJSON(v any) (string, error) {
	b, err := json.Marshal(v)
	return string(b), err
}

// expand runs one template; texts without an action are returned as they are.
func expand(text string, conv Conversation) (string, error) {
	if !strings.Contains(text, "{{") {
		return text, nil
	}
	t, err := template.New("turn").Funcs(funcs()).Parse(text)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	if err := t.Execute(&b, conv); err != nil {
		return "", err
	}
	return b.String(), nil
}

// render returns the turn with all templates expanded.
func (r rule) render(t Turn, conv Conversation) (Turn, error) {
	return t.mapStrings(func(s string) (string, error) { return expand(s, conv) })
}

// parseTemplates returns an error for the first invalid template in the turn.
func (t Turn) parseTemplates() error {
	_, err := t.mapStrings(func(s string) (string, error) {
		if _, err := template.New("turn").Funcs(funcs()).Parse(s); err != nil {
			return "", fmt.Errorf("%.40q: %w", s, err)
		}
		return s, nil
	})
	return err
}

// mapStrings returns a copy of the turn with f applied to every string that may be a template.
func (t Turn) mapStrings(f func(string) (string, error)) (Turn, error) {
	var err error
	one := func(s string) string {
		if err != nil {
			return s
		}
		var out string
		out, err = f(s)
		return out
	}
	t.Thinking, t.Text, t.Wait, t.Message = one(t.Thinking), one(t.Text), one(t.Wait), one(t.Message)
	bash := make([]string, len(t.Bash))
	for i, c := range t.Bash {
		bash[i] = one(c)
	}
	calls := make([]Call, len(t.Tools))
	for i, c := range t.Tools {
		calls[i] = Call{Name: c.Name, Input: mapValues(c.Input, one)}
	}
	t.Bash, t.Tools = bash, calls
	return t, err
}

// mapValues applies f to every string in a tree of JSON values.
func mapValues(m map[string]any, f func(string) string) map[string]any {
	out := maps.Clone(m)
	for k, v := range out {
		out[k] = mapValue(v, f)
	}
	return out
}

func mapValue(v any, f func(string) string) any {
	switch v := v.(type) {
	case string:
		return f(v)
	case map[string]any:
		return mapValues(v, f)
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = mapValue(v[i], f)
		}
		return list
	default:
		return v
	}
}
