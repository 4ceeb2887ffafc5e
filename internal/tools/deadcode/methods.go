package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// outside returns the names of methods that the standard library and other modules call through interfaces.
func outside() []string {
	return []string{
		"Error", "Is", "Unwrap", "String", "MarshalJSON", "UnmarshalJSON", "UnmarshalText", "MarshalText", "UnmarshalYAML", "MarshalYAML",
		"Len", "Less", "Swap", "Push", "Pop", // of container/heap
	}
}

// uncalledMethods returns a line for each exported method below root whose name no file and no template mentions outside
// of its own declaration, tests and packages for tests apart: position, import path, type and name, as deadcode's lines.
func uncalledMethods(root string) (string, error) {
	fset, mentioned, methods := token.NewFileSet(), map[string]bool{}, map[string]string{}
	for _, name := range outside() {
		mentioned[name] = true
	}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if name == "testdata" || name == "e2e" || strings.HasSuffix(name, "test") || name != "." && strings.HasPrefix(name, ".") {
				return filepath.SkipDir
			}
			return nil
		}
		if ext := filepath.Ext(name); ext == ".tmpl" || ext == ".html" {
			return mentionInTemplate(file, mentioned)
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("parse %s: %w", file, err)
		}
		dir, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			return err
		}
		mention(f, mentioned, func(typ string, name *ast.Ident) {
			if !underSim(dir) {
				methods[fmt.Sprintf("%s %s %s.%s\n", fset.Position(name.Pos()), path.Join(module, filepath.ToSlash(dir)), typ, name.Name)] = name.Name
			}
		})
		return nil
	})
	if err != nil {
		return "", err
	}
	maps.DeleteFunc(methods, func(_, name string) bool { return mentioned[name] })
	return strings.Join(slices.Sorted(maps.Keys(methods)), ""), nil
}

// underSim reports whether a directory belongs to the simulators: their methods are for tests, too.
func underSim(dir string) bool {
	dir = filepath.ToSlash(dir) + "/"
	return strings.HasPrefix(dir, "internal/sim/") || strings.HasPrefix(dir, "internal/demo/")
}

// mention adds the identifiers of a file to a set, without the names of its method declarations, and calls declare with
// the exported ones of these.
func mention(f *ast.File, set map[string]bool, declare func(typ string, name *ast.Ident)) {
	declared := map[*ast.Ident]bool{}
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Recv == nil || !fn.Name.IsExported() {
			continue
		}
		declared[fn.Name] = true
		declare(receiver(fn.Recv.List[0].Type), fn.Name)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && !declared[id] {
			set[id.Name] = true
		}
		return true
	})
}

// mentionInTemplate adds the names of fields and methods in a template to a set.
func mentionInTemplate(file string, set map[string]bool) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for _, m := range regexp.MustCompile(`\.([A-Z]\w*)`).FindAllSubmatch(text, -1) {
		set[string(m[1])] = true
	}
	return nil
}

// receiver returns the name of a receiver's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}
