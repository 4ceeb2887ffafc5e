package repotest_test

import (
	"bytes"
	"go/ast"
	"go/token"
	"strings"
	"testing"
)

// The maximum sizes of files and functions.
const (
	maxFileLines = 400
	maxFuncLines = 70
)

func TestSizes(t *testing.T) {
	t.Parallel()
	for _, f := range goFiles(t) {
		if n := bytes.Count(f.data, []byte("\n")); n > maxFileLines {
			t.Errorf("%s has %d lines; at most %d", f.path, n, maxFileLines)
		}
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			n := f.line(fn.End()) - f.line(fn.Pos()) + 1
			// A table test is as long as its table.
			if f.isTest() {
				n -= tableLines(f, fn)
			}
			if n > maxFuncLines {
				t.Errorf("%s:%d: %s has %d lines; at most %d", f.path, f.line(fn.Pos()), fn.Name.Name, n, maxFuncLines)
			}
		}
	}
}

// tableLines counts the lines of the literal maps and slices at the top of a function.
func tableLines(f file, fn *ast.FuncDecl) int {
	n := 0
	if fn.Body == nil {
		return 0
	}
	for _, s := range fn.Body.List {
		if r, ok := s.(*ast.RangeStmt); ok {
			if c, ok := r.X.(*ast.CompositeLit); ok {
				n += f.line(c.End()) - f.line(c.Pos())
			}
		}
		if a, ok := s.(*ast.AssignStmt); ok {
			for _, e := range a.Rhs {
				if c, ok := e.(*ast.CompositeLit); ok {
					n += f.line(c.End()) - f.line(c.Pos())
				}
			}
		}
	}
	return n
}

// No package has an init function: it would be hard to find, and tests could not undo it.
func TestNoInit(t *testing.T) {
	t.Parallel()
	for _, f := range goFiles(t) {
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				t.Errorf("%s:%d: init functions are not permitted", f.path, f.line(fn.Pos()))
			}
		}
	}
}

// Variables of packages are never assigned to.
func TestNoMutableGlobals(t *testing.T) {
	t.Parallel()
	all := goFiles(t)
	names := map[string]bool{}         // "package name"
	specs := map[*ast.ValueSpec]bool{} // their declarations
	for _, f := range all {
		for _, d := range f.ast.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR {
				continue
			}
			for _, spec := range g.Specs {
				specs[spec.(*ast.ValueSpec)] = true
				for _, name := range spec.(*ast.ValueSpec).Names {
					names[f.pkg()+" "+name.Name] = true
				}
			}
		}
	}
	// The parser resolves names within a file; those that are left open may be another file's.
	global := func(f file, id *ast.Ident) bool {
		if id.Obj == nil {
			return id.Name != "_" && names[f.pkg()+" "+id.Name]
		}
		spec, ok := id.Obj.Decl.(*ast.ValueSpec)
		return ok && specs[spec]
	}
	for _, f := range all {
		if f.isTest() {
			continue // TestMain prepares what all tests share
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			for _, e := range written(n) {
				if id := rootOf(e); id != nil && global(f, id) {
					t.Errorf("%s:%d: assignment to %s, a variable of the package", f.path, f.line(id.Pos()), id.Name)
				}
			}
			return true
		})
	}
}

// written returns the expressions to which a statement assigns.
func written(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			return n.Lhs
		}
	case *ast.IncDecStmt:
		return []ast.Expr{n.X}
	}
	return nil
}

// rootOf returns the variable at the root of x, x.f and x[i].
func rootOf(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		default:
			return nil
		}
	}
}

// Every package has a doc comment of suitable length.
func TestPackageDocs(t *testing.T) {
	t.Parallel()
	docs := map[string]string{}
	for _, f := range goFiles(t) {
		if !f.isTest() && docs[f.pkg()] == "" {
			docs[f.pkg()] = f.ast.Doc.Text()
		}
	}
	for pkg, doc := range docs {
		n := strings.Count(doc, "\n")
		if !strings.HasPrefix(doc, "Package ") && !strings.HasPrefix(doc, "Command ") {
			t.Errorf("%s has no package doc", pkg)
		} else if n < 3 || n > 15 {
			t.Errorf("%s: the package doc has %d lines; want between 3 and 15", pkg, n)
		}
	}
}

// Every exported name has a doc comment. In a group of constants or variables, a comment after the name or
// above the group is enough.
func TestExportedNamesAreDocumented(t *testing.T) {
	t.Parallel()
	for _, f := range goFiles(t) {
		if f.isTest() {
			continue
		}
		for _, d := range f.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && receiverIsExported(d) && d.Doc.Text() == "" && !fixed(d) {
					t.Errorf("%s:%d: %s has no doc comment", f.path, f.line(d.Pos()), d.Name.Name)
				}
			case *ast.GenDecl:
				undocumented(t, f, d)
			}
		}
	}
}

// fixed reports whether the standard library defines the meaning of a method.
func fixed(d *ast.FuncDecl) bool {
	return d.Recv != nil && (d.Name.Name == "Error" || d.Name.Name == "Unwrap")
}

func receiverIsExported(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	e := d.Recv.List[0].Type
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return false
		}
	}
}

// undocumented reports exported names of a declaration without a comment.
func undocumented(t *testing.T, f file, d *ast.GenDecl) {
	t.Helper()
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() && s.Doc.Text() == "" && d.Doc.Text() == "" {
				t.Errorf("%s:%d: %s has no doc comment", f.path, f.line(s.Pos()), s.Name.Name)
			}
		case *ast.ValueSpec:
			for _, name := range s.Names {
				if name.IsExported() && s.Doc.Text() == "" && s.Comment.Text() == "" && d.Doc.Text() == "" {
					t.Errorf("%s:%d: %s has no doc comment", f.path, f.line(s.Pos()), name.Name)
				}
			}
		}
	}
}
