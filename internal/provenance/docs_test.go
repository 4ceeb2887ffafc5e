package provenance

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// TestEveryFieldIsDocumented: docs/provenance.md names each field of a statement.
func TestEveryFieldIsDocumented(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../docs/provenance.md")
	if err != nil {
		t.Fatal(err)
	}
	_, fields, ok := strings.Cut(string(data), "## Field by field")
	if !ok {
		t.Fatal("the page has no list of fields")
	}
	n := 0
	var visit func(at reflect.Type)
	visit = func(at reflect.Type) {
		for at.Kind() == reflect.Pointer || at.Kind() == reflect.Slice {
			at = at.Elem()
		}
		if at.Kind() != reflect.Struct || at.PkgPath() != reflect.TypeFor[Predicate]().PkgPath() {
			return
		}
		for i := range at.NumField() {
			f := at.Field(i)
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
				if n++; !strings.Contains(fields, name) {
					t.Errorf("%s.%s: the page does not name %q", at.Name(), f.Name, name)
				}
			}
			visit(f.Type)
		}
	}
	visit(reflect.TypeFor[Predicate]())
	if n < 60 {
		t.Errorf("only %d fields were checked", n)
	}
}
