// Command extract reads Hetzner's published OpenAPI description and writes the parts about the answers and requests
// that errand uses: keys, types, required and nullable properties, and enumerated values. It omits all prose.
//
//	go run ./e2e/likeness/hetzner/extract cloud.spec.json > e2e/likeness/hetzner/described.json
//
// Start reading at run, then at subjects.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: extract DESCRIPTION")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "extract:", err)
		os.Exit(1)
	}
}

func run(path string) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read description: %w", err)
	}
	var doc map[string]any
	if err := json.Unmarshal(raw, &doc); err != nil {
		return fmt.Errorf("parse description: %w", err)
	}
	x := &extract{doc: doc, seen: map[string]int{}, names: map[string]string{}}
	out, err := x.write()
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(out)
	return err
}

// subjects are the parts of the API that errand uses.
func subjects() []string {
	return []string{"servers", "images", "actions", "ssh_keys", "firewalls", "networks", "server_types", "locations", "pricing", "volumes", "primary_ips"}
}

// extract is the result. Schemas that occur more than once are written once.
type extract struct {
	doc   map[string]any
	seen  map[string]int    // how often a schema occurs, by its text
	names map[string]string // of repeated schemas
}

// operation is one method of one path.
type operation struct {
	Params  []string       `json:"params,omitempty"`
	Request any            `json:"request,omitempty"`
	Answers map[string]any `json:"answers"` // by status, 4xx and 5xx for errors; null for none
}

func (x *extract) operations() map[string]*operation {
	out := map[string]*operation{}
	for path, methods := range object(x.doc["paths"]) {
		first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
		if !slices.Contains(subjects(), first) {
			continue
		}
		for method, v := range object(methods) {
			op := object(v)
			if op["responses"] == nil {
				continue
			}
			o := &operation{Answers: map[string]any{}}
			for _, p := range list(op["parameters"]) {
				if p := object(x.resolve(p)); p["in"] == "query" {
					o.Params = append(o.Params, fmt.Sprint(p["name"]))
				}
			}
			o.Request = x.body(op["requestBody"])
			for status, answer := range object(op["responses"]) {
				o.Answers[status] = x.body(answer)
			}
			out[strings.ToUpper(method)+" "+path] = o
		}
	}
	return out
}

// body is the JSON schema of a request or an answer, nil if it has none.
func (x *extract) body(v any) any {
	content := object(object(x.resolve(v))["content"])
	if s := object(content["application/json"])["schema"]; s != nil {
		return x.schema(s)
	}
	return nil
}

// schema rewrites a schema of OpenAPI 3.0 as one of JSON Schema 2020-12 without references and prose, in
// which a property that is not listed is an error.
func (x *extract) schema(v any) any {
	in := object(x.resolve(v))
	if all := list(in["allOf"]); len(all) == 1 {
		merged := maps.Clone(object(x.resolve(all[0])))
		if in["nullable"] == true {
			merged["nullable"] = true
		}
		in = merged
	}
	out := map[string]any{}
	for _, k := range []string{"type", "enum", "format", "pattern", "required"} {
		if in[k] != nil {
			out[k] = in[k]
		}
	}
	if f := out["format"]; f != nil && f != "date-time" {
		delete(out, "format")
	}
	props := map[string]any{}
	for k, p := range object(in["properties"]) {
		props[k] = x.schema(p)
	}
	if len(props) > 0 {
		out["properties"] = props
		if more := in["additionalProperties"]; more == nil || more == false {
			out["additionalProperties"] = false
		}
	}
	if more := object(in["additionalProperties"]); more != nil {
		out["additionalProperties"] = x.schema(more)
	}
	if in["items"] != nil {
		out["items"] = x.schema(in["items"])
	}
	for _, k := range []string{"oneOf", "anyOf", "allOf"} {
		var all []any
		for _, e := range list(in[k]) {
			all = append(all, x.schema(e))
		}
		if all != nil {
			out[k] = all
		}
	}
	return nullable(out, in["nullable"] == true)
}

func nullable(s map[string]any, yes bool) any {
	if !yes {
		return s
	}
	if e := list(s["enum"]); e != nil {
		s["enum"] = append(slices.Clone(e), nil)
	}
	if t, ok := s["type"].(string); ok {
		s["type"] = []any{t, "null"}
		return s
	}
	return map[string]any{"anyOf": []any{s, map[string]any{"type": "null"}}}
}

func (x *extract) resolve(v any) any {
	for {
		ref, ok := object(v)["$ref"].(string)
		if !ok {
			return v
		}
		v = any(x.doc)
		for part := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
			v = object(v)[part]
		}
	}
}

// write prints one operation, or one shared schema, per line.
func (x *extract) write() ([]byte, error) {
	ops := x.operations()
	for _, o := range ops {
		x.count(o.Request)
		for _, a := range o.Answers {
			x.count(a)
		}
	}
	defs := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(ops)) { // names of shared schemas depend on the order
		o := ops[name]
		o.Request = x.share(o.Request, defs)
		for _, status := range slices.Sorted(maps.Keys(o.Answers)) {
			o.Answers[status] = x.share(o.Answers[status], defs)
		}
	}
	var b bytes.Buffer
	b.WriteString("{\n\"operations\": {\n")
	if err := lines(&b, ops); err != nil {
		return nil, err
	}
	b.WriteString("},\n\"$defs\": {\n")
	if err := lines(&b, defs); err != nil {
		return nil, err
	}
	b.WriteString("}\n}\n")
	return b.Bytes(), nil
}

func lines[V any](b *bytes.Buffer, all map[string]V) error {
	for i, k := range slices.Sorted(maps.Keys(all)) {
		line, err := json.Marshal(all[k])
		if err != nil {
			return fmt.Errorf("write %s: %w", k, err)
		}
		if i > 0 {
			b.WriteString(",\n")
		}
		fmt.Fprintf(b, "%q: %s", k, line)
	}
	b.WriteString("\n")
	return nil
}

func (x *extract) count(v any) {
	switch v := v.(type) {
	case map[string]any:
		if v["properties"] != nil {
			text, _ := json.Marshal(v) // decoded from JSON
			x.seen[string(text)]++
		}
		for _, e := range v {
			x.count(e)
		}
	case []any:
		for _, e := range v {
			x.count(e)
		}
	}
}

// share replaces a schema that occurs more than once with a reference, whose name is derived from its properties.
func (x *extract) share(v any, defs map[string]any) any {
	switch v := v.(type) {
	case map[string]any:
		text, _ := json.Marshal(v) // decoded from JSON
		inner := map[string]any{}
		for _, k := range slices.Sorted(maps.Keys(v)) {
			inner[k] = x.share(v[k], defs)
		}
		if v["properties"] == nil || x.seen[string(text)] < 2 {
			return inner
		}
		name := x.names[string(text)]
		if name == "" {
			name = strings.Join(slices.Sorted(maps.Keys(object(v["properties"]))), "-")
			for base, n := name[:min(len(name), 60)], 1; ; n++ {
				name = fmt.Sprintf("%s.%d", base, n)
				if defs[name] == nil {
					break
				}
			}
			x.names[string(text)] = name
			defs[name] = inner
		}
		return map[string]any{"$ref": "#/$defs/" + name}
	case []any:
		out := make([]any, 0, len(v))
		for _, e := range v {
			out = append(out, x.share(e, defs))
		}
		return out
	}
	return v
}

func object(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}
