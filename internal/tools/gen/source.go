package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"

	"github.com/errand-bot/errand/internal/tools/layers"
)

// source returns the doc comments of the tree's packages. Each package is parsed once.
type source struct {
	root     string
	packages map[string]*comments
}

// comments has the doc comments of one package.
type comments struct {
	types  map[string]string            // by type
	fields map[string]map[string]string // by type and field
	consts map[string]string            // by name
}

func newSource(root string) *source { return &source{root: root, packages: map[string]*comments{}} }

// load parses a package of the tree, given by its import path.
func (s *source) load(path string) (*comments, error) {
	if c, ok := s.packages[path]; ok {
		return c, nil
	}
	dir := filepath.Join(s.root, filepath.FromSlash(strings.TrimPrefix(path, layers.Module)))
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read package %s: %w", path, err)
	}
	c := &comments{types: map[string]string{}, fields: map[string]map[string]string{}, consts: map[string]string{}}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, fmt.Errorf("read package %s: %w", path, err)
		}
		f, err := parser.ParseFile(token.NewFileSet(), e.Name(), data, parser.ParseComments)
		if err != nil {
			return nil, fmt.Errorf("parse package %s: %w", path, err)
		}
		c.take(f)
	}
	s.packages[path] = c
	return c, nil
}

// take adds the comments of one file.
func (c *comments) take(f *ast.File) {
	for _, decl := range f.Decls {
		g, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range g.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				c.types[spec.Name.Name] = plain(spec.Doc, g.Doc)
				if st, ok := spec.Type.(*ast.StructType); ok {
					c.takeFields(spec.Name.Name, st)
				}
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					c.consts[name.Name] = plain(spec.Doc, spec.Comment)
				}
			}
		}
	}
}

func (c *comments) takeFields(name string, st *ast.StructType) {
	c.fields[name] = map[string]string{}
	for _, f := range st.Fields.List {
		for _, n := range f.Names {
			c.fields[name][n.Name] = plain(f.Doc, f.Comment)
		}
	}
}

// plain returns the text of the first comment that is not empty, on one line.
func plain(groups ...*ast.CommentGroup) string {
	for _, g := range groups {
		if text := strings.Join(strings.Fields(g.Text()), " "); text != "" {
			return text
		}
	}
	return ""
}
