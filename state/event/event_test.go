package event

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/state"
)

// TestEventSurvivesStorage checks that an event of every kind is read back as it was stored.
func TestEventSurvivesStorage(t *testing.T) {
	t.Parallel()
	for kind, decode := range decoders {
		payload, err := decode([]byte("{}"))
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		if payload.Kind() != kind {
			t.Errorf("got kind %s of the payload, want %s", payload.Kind(), kind)
		}
		filled := reflect.New(reflect.TypeOf(payload)).Elem()
		fill(filled, 0)
		e := Event{
			Task: state.TaskKey{Repo: 7, Issue: 1}, ID: "comment:5", At: time.Unix(1, 0).UTC(), By: state.Person{ID: 3, Login: "ada"},
			Repo: &state.Repo{ID: 7, Name: "r"}, Via: "label", Context: Context{VMNeeded: true}, Payload: filled.Interface().(Payload),
		}
		data, err := json.Marshal(e)
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		var got Event
		if err := json.Unmarshal(data, &got); err != nil {
			t.Fatalf("%s: %v\n%s", kind, err, data)
		}
		if d := cmp.Diff(e, got); d != "" {
			t.Errorf("%s (-stored +read):\n%s", kind, d)
		}
	}
}

// TestEveryKindHasADecoder checks that an event of every kind can be read after it was stored.
func TestEveryKindHasADecoder(t *testing.T) {
	t.Parallel()
	f, err := parser.ParseFile(token.NewFileSet(), "kind.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	ast.Inspect(f, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		typ, _ := spec.Type.(*ast.Ident)
		value, _ := spec.Values[0].(*ast.BasicLit)
		if typ == nil || typ.Name != "Kind" || value == nil {
			return true
		}
		kind, err := strconv.Unquote(value.Value)
		if err != nil {
			t.Fatal(err)
		}
		n++
		if decoders[Kind(kind)] == nil && Kind(kind) != KindNothing {
			t.Errorf("%s has no decoder", spec.Names[0].Name)
		}
		return true
	})
	if n < len(decoders) {
		t.Errorf("only %d kinds were found, and there are %d decoders", n, len(decoders))
	}
}

// fill sets every field that JSON has to a value other than zero.
func fill(v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(5)
	case reflect.Float64:
		v.SetFloat(0.5)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth+1)
	case reflect.Slice:
		if depth < 6 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			fill(v.Index(0), depth+1)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(9, 0).UTC()))
			return
		}
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && f.Tag.Get("json") != "-" && depth < 6 {
				fill(v.Field(i), depth+1)
			}
		}
	}
}

// TestPayloadFieldsDifferFromEventFields checks that the flat object has every name once.
func TestPayloadFieldsDifferFromEventFields(t *testing.T) {
	t.Parallel()
	envelopes := names(t, Event{})
	for kind, decode := range decoders {
		payload, err := decode([]byte("{}"))
		if err != nil {
			t.Fatal(err)
		}
		filled := reflect.New(reflect.TypeOf(payload)).Elem()
		fill(filled, 0)
		for name := range names(t, filled.Interface()) {
			if envelopes[name] {
				t.Errorf("%s: %q is a field of the event and of the payload", kind, name)
			}
		}
	}
}

// names returns the JSON names of a value, of an Event those that it can have.
func names(t *testing.T, v any) map[string]bool {
	t.Helper()
	if _, ok := v.(Event); ok {
		filled := reflect.New(reflect.TypeFor[envelope]()).Elem()
		fill(filled, 0)
		v = filled.Interface()
	}
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(data, &fields); err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{"kind": true}
	if _, ok := v.(envelope); !ok {
		out = map[string]bool{}
	}
	for name := range fields {
		out[name] = true
	}
	return out
}

// TestUnknownKindIsRejected checks that an event of a kind that this version does not know is an error, not an event
// without effect.
func TestUnknownKindIsRejected(t *testing.T) {
	t.Parallel()
	for _, data := range []string{`{"kind":"invented"}`, `{}`, `[]`, `{"kind":"commented","comment":5}`} {
		var e Event
		if err := json.Unmarshal([]byte(data), &e); err == nil {
			t.Errorf("%s: got no error", data)
		}
	}
}
