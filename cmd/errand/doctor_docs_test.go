package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// verb is a verb of fmt in a text.
var verb = regexp.MustCompile(`%[0-9.\[\]]*[a-z]`)

// TestDoctorLinesAreDocumented: docs/troubleshooting.md has the longest part of every line about a problem that doctor can print.
func TestDoctorLinesAreDocumented(t *testing.T) {
	t.Parallel()
	docs, err := os.ReadFile("../../docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for _, pattern := range []string{"doctor.go", "../../internal/doctor/*.go", "../../internal/server/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range foundTexts(file) {
				longest := ""
				for _, part := range verb.Split(text, -1) {
					if part = strings.Trim(part, " .:,(); "); len(part) > len(longest) {
						longest = part
					}
				}
				if lines++; len(longest) > 3 && !strings.Contains(string(docs), longest) {
					t.Errorf("%s: %q is not in docs/troubleshooting.md", path, longest)
				}
			}
		}
	}
	if lines < 80 {
		t.Errorf("found only %d lines in the sources", lines)
	}
}

// foundTexts returns the texts that the code assigns to Finding.Found, except those of findings without a problem.
func foundTexts(file *ast.File) (texts []string) {
	add := func(fields map[string]ast.Expr) {
		found, status := fields["Found"], fields["Status"]
		if selector, ok := status.(*ast.SelectorExpr); ok {
			status = selector.Sel
		}
		if name, ok := status.(*ast.Ident); found == nil || ok && name.Name == "OK" {
			return
		}
		ast.Inspect(found, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if text, err := strconv.Unquote(lit.Value); err == nil {
					texts = append(texts, text)
				}
				return false
			}
			_, isCall := n.(*ast.CallExpr)
			return !isCall || isFormat(n)
		})
	}
	ast.Inspect(file, func(n ast.Node) bool {
		fields := map[string]ast.Expr{}
		switch n := n.(type) {
		case *ast.CompositeLit:
			for _, e := range n.Elts {
				if pair, ok := e.(*ast.KeyValueExpr); ok {
					if key, ok := pair.Key.(*ast.Ident); ok {
						fields[key.Name] = pair.Value
					}
				}
			}
		case *ast.AssignStmt:
			for i, to := range n.Lhs {
				if field, ok := to.(*ast.SelectorExpr); ok && i < len(n.Rhs) {
					fields[field.Sel.Name] = n.Rhs[i]
				}
			}
		}
		add(fields)
		return true
	})
	return texts
}

// isFormat reports whether a node is a call of fmt.Sprintf.
func isFormat(n ast.Node) bool {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return false
	}
	f, ok := call.Fun.(*ast.SelectorExpr)
	return ok && f.Sel.Name == "Sprintf"
}
