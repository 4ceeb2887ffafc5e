package likeness

import (
	"os"
	"slices"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
)

// TestGraphQLSchema: the simulator's GraphQL schema is a subset of GitHub's: types, fields, arguments, fields of inputs
// and values of enumerations, with the same types. It may lack the parts that errand does not use.
func TestGraphQLSchema(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(need(t, "graphql-schema/schema.graphql"))
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := newGraphQL(string(raw))
	if err != nil {
		t.Fatal(err)
	}
	if raw, err = os.ReadFile("../../internal/sim/simgithub/schema.graphql"); err != nil {
		t.Fatal(err)
	}
	ours, err := gqlparser.LoadSchema(&ast.Source{Name: "simgithub", Input: string(raw)})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for name, def := range ours.Types {
		if def.BuiltIn {
			continue
		}
		real := theirs.schema.Types[name]
		if real == nil || real.Kind != def.Kind {
			t.Errorf("GitHub has no %s %s", def.Kind, name)
			continue
		}
		n += compare(t, def, real)
	}
	if n < 100 {
		t.Errorf("only %d fields were compared", n)
	}
}

// compare compares one type with GitHub's, and counts the comparisons.
func compare(t *testing.T, def, real *ast.Definition) int {
	t.Helper()
	n := 0
	for _, v := range def.EnumValues {
		if n++; real.EnumValues.ForName(v.Name) == nil {
			t.Errorf("%s has no value %s", def.Name, v.Name)
		}
	}
	for _, member := range def.Types {
		if n++; !slices.Contains(real.Types, member) {
			t.Errorf("%s is never a %s", def.Name, member)
		}
	}
	for _, i := range def.Interfaces {
		if n++; !slices.Contains(real.Interfaces, i) {
			t.Errorf("%s is no %s", def.Name, i)
		}
	}
	for _, f := range def.Fields {
		if len(f.Name) > 1 && f.Name[:2] == "__" {
			continue
		}
		n++
		same := real.Fields.ForName(f.Name)
		if same == nil {
			t.Errorf("%s has no field %s", def.Name, f.Name)
			continue
		}
		if f.Type.String() != same.Type.String() {
			t.Errorf("%s.%s is %s, at GitHub %s", def.Name, f.Name, f.Type, same.Type)
		}
		for _, a := range f.Arguments {
			if n++; same.Arguments.ForName(a.Name) == nil {
				t.Errorf("%s.%s takes no %s", def.Name, f.Name, a.Name)
			} else if real := same.Arguments.ForName(a.Name).Type.String(); a.Type.String() != real {
				t.Errorf("%s.%s takes %s of %s, at GitHub of %s", def.Name, f.Name, a.Name, a.Type, real)
			}
		}
		for _, a := range same.Arguments {
			if a.Type.NonNull && a.DefaultValue == nil && f.Arguments.ForName(a.Name) == nil {
				t.Errorf("%s.%s wants %s", def.Name, f.Name, a.Name)
			}
		}
	}
	return n
}
