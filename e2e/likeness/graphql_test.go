package likeness

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"github.com/errand-bot/errand/internal/sim/simgithub/record"
)

// graphql checks queries and their answers against GitHub's public schema.
type graphql struct {
	schema *ast.Schema
	used   map[string]bool
}

func newGraphQL(text string) (*graphql, error) {
	doc, err := parser.ParseSchemas(validator.Prelude, &ast.Source{Name: "schema.graphql", Input: text})
	if err != nil {
		return nil, fmt.Errorf("parse GitHub's GraphQL schema: %w", err)
	}
	for _, d := range doc.Definitions { // it declares a field of one type twice
		known := map[string]bool{}
		d.Fields = slices.DeleteFunc(d.Fields, func(f *ast.FieldDefinition) bool {
			twice := known[f.Name]
			known[f.Name] = true
			return twice
		})
	}
	schema, err := validator.ValidateSchemaDocument(doc)
	if err != nil {
		return nil, fmt.Errorf("load GitHub's GraphQL schema: %w", err)
	}
	return &graphql{schema: schema, used: map[string]bool{}}, nil
}

// judge returns the differences of a query from GitHub's GraphQL, and of its answer from the requested form.
func (g *graphql) judge(rec record.Record) ([]unlike, error) {
	var asked struct {
		Query     string         `json:"query"`
		Variables map[string]any `json:"variables"`
	}
	where := fmt.Sprintf("GraphQL %d", rec.Status)
	if rec.Request == nil || json.Unmarshal(rec.Request, &asked) != nil {
		return nil, nil // an invalid request; the answer is an error
	}
	body, err := parse(rec.Body)
	if err != nil {
		return nil, err
	}
	if rec.Status != 200 {
		if dig(body, "message") == nil {
			return []unlike{{where: where, what: "an error without message"}}, nil
		}
		return nil, nil
	}
	var out []unlike
	say := func(what string) { out = append(out, unlike{where: where, what: what}) }
	for _, e := range list(dig(body, "errors")) {
		if text(dig(e, "message")) == "" {
			say("an entry of errors has no message")
		}
	}
	doc, bad := gqlparser.LoadQueryWithRules(g.schema, asked.Query, rules.NewDefaultRules())
	if len(bad) > 0 {
		if dig(body, "data") == nil {
			return out, nil // the simulator rejects it, too
		}
		for _, e := range bad {
			say("query: " + e.Message)
		}
		return out, nil
	}
	if len(doc.Operations) != 1 {
		say("not one operation")
		return out, nil
	}
	op := doc.Operations[0]
	where = "GraphQL " + name(op)
	g.used[where] = true
	if _, err := validator.VariableValues(g.schema, op, asked.Variables); err != nil && dig(body, "data") != nil {
		say("variables: " + err.Error())
	}
	if data := dig(body, "data"); data != nil {
		w := walker{schema: g.schema, failed: dig(body, "errors") != nil}
		root := g.schema.Query
		if op.Operation == ast.Mutation {
			root = g.schema.Mutation
		}
		w.object("", op.SelectionSet, root, data)
		for _, what := range slices.Sorted(maps.Keys(w.found)) {
			say("answer: " + what)
		}
	} else if dig(body, "errors") == nil {
		say("neither data nor errors")
	}
	return out, nil
}

// name returns the fields that an operation requests.
func name(op *ast.OperationDefinition) string {
	var fields []string
	for _, s := range op.SelectionSet {
		if f, ok := s.(*ast.Field); ok && !slices.Contains(fields, f.Name) {
			fields = append(fields, f.Name)
		}
	}
	return string(op.Operation) + " " + strings.Join(fields, " ")
}

// walker compares an answer with its query.
type walker struct {
	schema *ast.Schema
	failed bool // the answer has errors, which may explain missing fields
	found  map[string]bool
}

func (w *walker) say(at, format string, args ...any) {
	if w.found == nil {
		w.found = map[string]bool{}
	}
	w.found[at+" "+fmt.Sprintf(format, args...)] = true
}

// object compares an object with its selection. Fields of fragments are optional, others are required.
func (w *walker) object(at string, sel ast.SelectionSet, def *ast.Definition, v any) {
	m, ok := v.(map[string]any)
	if !ok {
		w.say(at, "is no object")
		return
	}
	may := map[string]*ast.Field{}
	w.fields(sel, def, text(m["__typename"]), func(f *ast.Field, must bool) {
		may[f.Alias] = f
		if _, there := m[f.Alias]; !there && must {
			w.say(at+"/"+f.Alias, "was asked for and is not there")
		}
	})
	for k, e := range m {
		f, ok := may[k]
		switch {
		case !ok:
			w.say(at+"/"+k, "was not asked for")
		case f.Name != "__typename":
			w.value(at+"/"+f.Name, f.SelectionSet, f.Definition.Type, e)
		}
	}
}

// fields returns the fields of a selection, and whether an object of the type must have them.
func (w *walker) fields(sel ast.SelectionSet, def *ast.Definition, kind string, tell func(f *ast.Field, must bool)) {
	inner := func(sel ast.SelectionSet, on string) {
		is := on == "" || on == def.Name || on == kind
		w.fields(sel, def, kind, func(f *ast.Field, must bool) { tell(f, must && is) })
	}
	for _, s := range sel {
		switch s := s.(type) {
		case *ast.Field:
			tell(s, len(s.Directives) == 0)
		case *ast.InlineFragment:
			inner(s.SelectionSet, s.TypeCondition)
		case *ast.FragmentSpread:
			inner(s.Definition.SelectionSet, s.Definition.TypeCondition)
		}
	}
}

// value compares one value with its type.
func (w *walker) value(at string, sel ast.SelectionSet, typ *ast.Type, v any) {
	if v == nil {
		if typ.NonNull && !w.failed {
			w.say(at, "is null, but %s", typ)
		}
		return
	}
	if typ.Elem != nil {
		l, ok := v.([]any)
		if !ok {
			w.say(at, "is no list")
		}
		for _, e := range l {
			w.value(at, sel, typ.Elem, e)
		}
		return
	}
	def := w.schema.Types[typ.NamedType]
	switch def.Kind {
	case ast.Scalar:
		if !scalar(def.Name, v) {
			w.say(at, "%v is no %s", v, def.Name)
		}
	case ast.Enum:
		if def.EnumValues.ForName(text(v)) == nil {
			w.say(at, "%v is none of %s", v, def.Name)
		}
	default:
		w.object(at, sel, def, v)
	}
}

// scalar reports whether a value has a scalar type.
func scalar(kind string, v any) bool {
	s, isText := v.(string)
	switch kind {
	case "Int":
		n, ok := v.(json.Number)
		if !ok {
			return false
		}
		i, err := n.Int64()
		return err == nil && i == int64(int32(i))
	case "Float":
		_, ok := v.(json.Number)
		return ok
	case "Boolean":
		_, ok := v.(bool)
		return ok
	case "DateTime", "GitTimestamp":
		_, err := time.Parse(time.RFC3339, s)
		return isText && err == nil
	case "URI":
		return isText && strings.Contains(s, "://")
	case "GitObjectID":
		return isText && (len(s) == 40 || len(s) == 64)
	default:
		return isText
	}
}
