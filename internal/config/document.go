package config

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/errand-bot/errand/state/settings"
)

// document is a YAML file that is compared with the type of its configuration. The decoder does not do this because it
// stops at the first error, and reports neither the whole key nor the correction.
type document struct {
	lines map[string]int // of every key and list element
	report
}

// decode reads data into out, which contains the defaults. The error is an *Invalid.
func decode(data []byte, limit int, out any) (*document, error) {
	d := &document{lines: map[string]int{}}
	if len(data) > limit {
		return d, &Invalid{Problems: []Problem{{Text: fmt.Sprintf("the file is larger than %d KiB", limit>>10)}}}
	}
	if p := tooDeep(data); p != nil {
		return d, &Invalid{Problems: []Problem{*p}}
	}
	body, err := parse(data)
	if err != nil {
		return d, err
	}
	if body == nil {
		return d, nil // an empty file is all defaults
	}
	d.check("", body, reflect.TypeOf(out).Elem())
	if err := invalid(d.report, d.line); err != nil {
		return d, err
	}
	if err := yaml.NodeToValue(body, out, yaml.Strict(), yaml.CustomUnmarshaler(readDuration)); err != nil {
		return d, notYAML(err)
	}
	return d, nil
}

// parse returns the only document in a file, or nil if the file is empty. It recovers from a panic of the parser,
// because other people write its input.
func parse(data []byte) (body ast.Node, err error) {
	defer func() {
		if r := recover(); r != nil {
			body, err = nil, &Invalid{Problems: []Problem{{Text: "this is not YAML: " + cut(fmt.Sprint(r))}}}
		}
	}()
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		return nil, notYAML(err)
	}
	for i, doc := range file.Docs {
		switch {
		case doc.Body == nil || doc.Body.Type() == ast.CommentType || i == 0 && doc.Body.Type() == ast.NullType:
		case doc.Body.Type() == ast.DirectiveType:
			return nil, &Invalid{Problems: []Problem{{Line: line(doc.Body.GetToken()), Text: "YAML directives are not supported; remove it"}}}
		case body != nil:
			return nil, &Invalid{Problems: []Problem{{Line: line(doc.Body.GetToken()), Text: "this is a second document; write everything in one"}}}
		default:
			body = doc.Body
		}
	}
	return body, nil
}

// maxDepth is the maximum nesting, far more than any file needs. The parser recurses once per level.
const maxDepth = 50

// tooDeep returns a problem if the nesting could exhaust the parser's stack.
func tooDeep(data []byte) *Problem {
	n, ln := 0, 1
	for l := range strings.Lines(string(data)) {
		rest := strings.TrimLeft(l, " -?\t")
		n = max(n, 0)
		if indent := len(l) - len(rest); indent > 4*maxDepth {
			return &Problem{Line: ln, Text: "the nesting is too deep"}
		}
		for _, c := range rest {
			switch c {
			case '[', '{':
				n++
			case ']', '}':
				n--
			}
			if n > maxDepth {
				return &Problem{Line: ln, Text: "the nesting is too deep"}
			}
		}
		ln++
	}
	return nil
}

// notYAML converts the parser's error to an *Invalid.
func notYAML(err error) error {
	var at yaml.Error
	if !errors.As(err, &at) {
		return &Invalid{Problems: []Problem{{Text: cut(err.Error())}}}
	}
	text := cut(at.GetMessage())
	if strings.HasSuffix(text, "is a reserved character") { // such as the @ of a team
		text += ": put the value in quotes"
	}
	return &Invalid{Problems: []Problem{{Line: line(at.GetToken()), Text: text}}}
}

// line returns the line of a token, or 0 if it has none.
func line(t *token.Token) int {
	if t == nil || t.Position == nil {
		return 0
	}
	return t.Position.Line
}

// line returns the line of a key, or of its nearest parent in the file.
func (d *document) line(key string) int {
	for key != "" {
		if n, ok := d.lines[key]; ok {
			return n
		}
		key = key[:max(0, strings.LastIndexAny(key, ".["))]
	}
	return 0
}

// has reports whether the file has a key.
func (d *document) has(key string) bool { _, ok := d.lines[key]; return ok }

// problem records a problem with a node.
func (d *document) problem(key string, n ast.Node, format string, args ...any) {
	d.report = append(d.report, Problem{Line: line(n.GetToken()), Key: key, Text: fmt.Sprintf(format, args...)})
}

// check compares a node with the type of its field.
func (d *document) check(key string, n ast.Node, t reflect.Type) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch n := n.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode, *ast.MergeKeyNode:
		d.problem(key, n, "anchors, aliases and tags are not supported; write the value out")
		return
	case *ast.NullNode:
		d.problem(key, n, "the value is missing; %s, or remove the key", expectedValue(t))
		return
	case *ast.StringNode:
		if t == reflect.TypeFor[RepoCommand]() || t == reflect.TypeFor[ShellList]() {
			return
		}
	}
	switch t.Kind() {
	case reflect.Struct:
		if t == reflect.TypeFor[Secret]() {
			d.checkScalar(key, n, t)
			return
		}
		d.checkMapping(key, n, t)
	case reflect.Map:
		d.checkMapping(key, n, t)
	case reflect.Slice:
		d.checkList(key, n, t)
	default:
		d.checkScalar(key, n, t)
	}
}

// checkMapping checks the keys of a struct or map, and their values.
func (d *document) checkMapping(key string, n ast.Node, t reflect.Type) {
	var values []*ast.MappingValueNode
	switch n := n.(type) {
	case *ast.MappingNode:
		values = n.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{n}
	default:
		d.problem(key, n, "%s", expectedValue(t))
		return
	}
	for _, v := range values {
		name, ok := v.Key.(*ast.StringNode)
		if !ok {
			d.problem(key, v.Key, "%s is not a key; write a word", cut(v.Key.String()))
			continue
		}
		sub := join(key, cut(name.Value))
		d.lines[sub] = line(v.Key.GetToken())
		if t.Kind() == reflect.Map {
			d.check(sub, v.Value, t.Elem())
			continue
		}
		f, ok := fieldOf(t, name.Value)
		if !ok {
			d.problem(sub, v.Key, "%s", unknownKeyReason(sub, name.Value, t))
			continue
		}
		d.check(sub, v.Value, f.Type)
	}
}

// checkList checks the elements of a list.
func (d *document) checkList(key string, n ast.Node, t reflect.Type) {
	list, ok := n.(*ast.SequenceNode)
	if !ok {
		d.problem(key, n, "%s", expectedValue(t))
		return
	}
	for i, v := range list.Values {
		sub := fmt.Sprintf("%s[%d]", key, i)
		d.lines[sub] = line(v.GetToken())
		d.check(sub, v, t.Elem())
	}
}

// checkScalar checks a single value.
func (d *document) checkScalar(key string, n ast.Node, t reflect.Type) {
	ok := false
	switch n := n.(type) {
	case *ast.StringNode:
		if ok = t.Kind() == reflect.String || t == reflect.TypeFor[Secret](); !ok && t == reflect.TypeFor[time.Duration]() {
			_, err := ParseDuration(n.Value)
			ok = err == nil
		}
	case *ast.LiteralNode:
		ok = t.Kind() == reflect.String || t == reflect.TypeFor[Secret]()
	case *ast.BoolNode:
		ok = t.Kind() == reflect.Bool || t == reflect.TypeFor[settings.DraftMode]()
	case *ast.IntegerNode:
		ok = t.Kind() == reflect.Float64 || (t.Kind() == reflect.Int || t.Kind() == reflect.Int64) && t != reflect.TypeFor[time.Duration]()
	case *ast.FloatNode:
		ok = t.Kind() == reflect.Float64 && !math.IsInf(n.Value, 0)
	}
	if !ok {
		d.problem(key, n, "%s", expectedValue(t))
	}
}
