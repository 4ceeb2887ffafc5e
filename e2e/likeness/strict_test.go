package likeness

import (
	"slices"
	"strings"
)

// strict rewrites an OpenAPI description in place, so that a validator of JSON Schema 2020-12 finds all errors:
// `nullable` of OpenAPI 3.0 becomes a separate type, and unknown properties are errors. GitHub's schemas allow more
// properties nearly everywhere, but an unknown one in a simulated answer could mislead errand.
type strict struct {
	doc  map[string]any
	open map[string]int // by reference: 1 lists its properties, 2 allows any, 3 is being examined
}

// apply rewrites every schema of the description.
func (s *strict) apply() {
	s.open = map[string]int{}
	for _, v := range object(dig(s.doc, "components", "schemas")) {
		s.schema(v, false)
	}
	s.find(s.doc["paths"])
	s.find(s.doc["webhooks"])
	s.find(dig(s.doc, "components", "responses"))
}

// find rewrites the schemas in answers and requests.
func (s *strict) find(v any) {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if k == "schema" {
				s.schema(e, true)
			} else if k != "example" && k != "examples" {
				s.find(e)
			}
		}
	case []any:
		for _, e := range v {
			s.find(e)
		}
	}
}

// schema rewrites one schema. whole reports that no other schema adds properties to it, so that unknown properties are
// errors.
func (s *strict) schema(v any, whole bool) {
	m := object(v)
	if m == nil {
		return
	}
	for _, k := range []string{"allOf", "anyOf", "oneOf"} {
		for _, e := range list(m[k]) {
			s.schema(e, false)
		}
	}
	for _, e := range object(m["properties"]) {
		s.schema(e, true)
	}
	s.schema(m["items"], true)
	s.schema(m["additionalProperties"], true)
	for _, k := range []string{"exclusiveMinimum", "exclusiveMaximum"} {
		if _, old := m[k].(bool); old {
			delete(m, k)
		}
	}
	if _, said := m["additionalProperties"]; whole && !said && s.listed(m) == 1 {
		m["unevaluatedProperties"] = false
	}
	s.nullable(m)
}

// nullable converts OpenAPI 3.0's keyword to types.
func (s *strict) nullable(m map[string]any) {
	if m["nullable"] != true {
		return
	}
	delete(m, "nullable")
	if e, ok := m["enum"].([]any); ok && !slices.Contains(e, nil) {
		m["enum"] = append(slices.Clone(e), nil)
	}
	if t, ok := m["type"].(string); ok {
		m["type"] = []any{t, "null"}
		if m["allOf"] == nil && m["anyOf"] == nil && m["oneOf"] == nil {
			return
		}
	}
	if m["type"] == nil && m["allOf"] == nil && m["anyOf"] == nil && m["oneOf"] == nil && m["$ref"] == nil {
		return // already allows anything
	}
	inner := map[string]any{}
	for k, v := range m {
		inner[k] = v
		delete(m, k)
	}
	m["anyOf"] = []any{inner, map[string]any{"type": "null"}}
}

// listed returns 1 if a schema lists the properties of its objects, 2 if it allows any, 0 if it is not about objects.
func (s *strict) listed(m map[string]any) int {
	if ref, ok := m["$ref"].(string); ok {
		if known := s.open[ref]; known != 0 {
			return known % 3
		}
		s.open[ref] = 3
		s.open[ref] = s.listed(object(s.resolve(ref)))
		return s.open[ref]
	}
	out := 0
	for _, k := range []string{"allOf", "anyOf", "oneOf"} {
		for _, e := range list(m[k]) {
			out = max(out, s.listed(object(e)))
		}
	}
	switch more := m["additionalProperties"]; {
	case more != nil && more != false:
		return 2
	case m["properties"] != nil:
		return max(out, 1)
	case out == 0 && (m["type"] == "object" || len(m) == 0):
		return 2
	}
	return out
}

// resolve follows a reference within the description.
func (s *strict) resolve(ref string) any {
	var v any = s.doc
	for part := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		v = dig(v, unescape(part))
	}
	return v
}

// unescape and escape are those of JSON pointers.
func unescape(part string) string {
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
}

func escape(part string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(part)
}
