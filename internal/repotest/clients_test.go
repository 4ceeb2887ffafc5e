package repotest_test

import (
	"go/ast"
	"slices"
	"testing"
)

// Tests send requests with the client of package webtest, or one with a transport of its own: closing a server of package httptest
// closes the connections of http.DefaultTransport, also those of tests that run in parallel.
func TestTestsShareNoConnections(t *testing.T) {
	t.Parallel()
	const advice = "closing any server of package httptest breaks its requests; use package webtest"
	clients := 0
	for _, f := range goFiles(t) {
		if !f.isTest() {
			continue
		}
		cloned := map[*ast.SelectorExpr]bool{}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeAssertExpr: // to clone it
				if s, ok := n.X.(*ast.SelectorExpr); ok {
					cloned[s] = true
				}
			case *ast.CompositeLit:
				if s, ok := n.Type.(*ast.SelectorExpr); ok && isHTTP(s) && s.Sel.Name == "Client" {
					clients++
					if !hasField(n, "Transport") {
						t.Errorf("%s:%d: this client has http.DefaultTransport: %s", f.path, f.line(n.Pos()), advice)
					}
				}
			case *ast.SelectorExpr:
				names := []string{"DefaultClient", "DefaultTransport", "Get", "Head", "Post", "PostForm"}
				if isHTTP(n) && slices.Contains(names, n.Sel.Name) && !cloned[n] {
					t.Errorf("%s:%d: http.%s: %s", f.path, f.line(n.Pos()), n.Sel.Name, advice)
				}
			}
			return true
		})
	}
	if clients < 10 {
		t.Errorf("only %d clients were found in tests", clients)
	}
}

// isHTTP reports whether a name is one of package net/http.
func isHTTP(s *ast.SelectorExpr) bool {
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == "http"
}

// hasField reports whether a literal of a struct sets the field.
func hasField(lit *ast.CompositeLit, name string) bool {
	return slices.ContainsFunc(lit.Elts, func(e ast.Expr) bool {
		kv, ok := e.(*ast.KeyValueExpr)
		if !ok {
			return false
		}
		key, ok := kv.Key.(*ast.Ident)
		return ok && key.Name == name
	})
}
