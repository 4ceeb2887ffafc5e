package layers

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Module is the prefix of the import paths of the tree's packages.
const Module = "github.com/errand-bot/errand/"

// A Package has the doc comment and the imports of a package's files, for all platforms.
type Package struct {
	Path        string   // from the top of the tree, with slashes
	Doc         string   // the first sentence of its doc comment
	Imports     []string // sorted import paths of its code
	TestImports []string // those of its tests
}

// Ours returns the tree's packages among the imports of the package's code, by their paths from the top.
func (p Package) Ours() []string {
	var list []string
	for _, path := range p.Imports {
		if ours, ok := strings.CutPrefix(path, Module); ok {
			list = append(list, ours)
		}
	}
	return list
}

// Packages returns the packages of the files, which are all below root and named from there, sorted by path.
func Packages(root string, files []string) ([]Package, error) {
	imports, tests, docs := map[string]map[string]bool{}, map[string]map[string]bool{}, map[string]string{}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			return nil, fmt.Errorf("parse imports: %w", err)
		}
		pkg := filepath.ToSlash(filepath.Dir(file))
		if imports[pkg] == nil {
			imports[pkg], tests[pkg] = map[string]bool{}, map[string]bool{}
		}
		to := imports[pkg]
		if strings.HasSuffix(file, "_test.go") {
			to = tests[pkg]
		}
		if err := take(f, pkg, to); err != nil {
			return nil, fmt.Errorf("read imports of %s: %w", file, err)
		}
		if f.Doc != nil && !strings.HasSuffix(file, "_test.go") {
			docs[pkg] = new(doc.Package).Synopsis(f.Doc.Text())
		}
	}
	var list []Package
	for pkg := range imports {
		list = append(list, Package{
			Path: pkg, Doc: docs[pkg],
			Imports: slices.Sorted(maps.Keys(imports[pkg])), TestImports: slices.Sorted(maps.Keys(tests[pkg])),
		})
	}
	slices.SortFunc(list, func(a, b Package) int { return cmp.Compare(a.Path, b.Path) })
	return list, nil
}

// take adds the imports of a file. It leaves out the import of the package by its own external test.
func take(f *ast.File, pkg string, to map[string]bool) error {
	for _, i := range f.Imports {
		path, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			return err
		}
		if path != Module+pkg {
			to[path] = true
		}
	}
	return nil
}

// Files returns the files below root that end in suffix, named from there: those that git would keep, without test
// data.
func Files(root, suffix string) ([]string, error) {
	var list []string
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && rel != "." && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") || rel == "bin" || rel == "dist"):
			return filepath.SkipDir
		case !d.IsDir() && strings.HasSuffix(rel, suffix):
			list = append(list, filepath.ToSlash(rel))
		}
		return nil
	})
	return list, err
}
