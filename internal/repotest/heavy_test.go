package repotest_test

import (
	"go/ast"
	"strings"
	"testing"
)

// Heavy tests have names that begin with TestHeavy, by which `make test` skips them and `make test-full` finds them.
func TestNamesOfHeavyTests(t *testing.T) {
	t.Parallel()
	found := 0
	for _, f := range goFiles(t) {
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !f.isTest() || fn.Recv != nil || !strings.HasPrefix(fn.Name.Name, "Test") {
				continue
			}
			named, asks := strings.HasPrefix(fn.Name.Name, "TestHeavy"), asksForHeavy(fn)
			if named != asks {
				t.Errorf("%s:%d: %s calls heavytest.Mark: %v, want a name that begins with TestHeavy and the call, or neither", f.path, f.line(fn.Pos()), fn.Name.Name, asks)
			}
			if named {
				found++
			}
		}
	}
	if found < 30 {
		t.Errorf("only %d heavy tests were found", found)
	}
}

// asksForHeavy reports whether a test calls heavytest.Mark.
func asksForHeavy(fn *ast.FuncDecl) (asks bool) {
	ast.Inspect(fn, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "Mark" {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == "heavytest" {
				asks = true
			}
		}
		return true
	})
	return asks
}
