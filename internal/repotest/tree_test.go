package repotest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/errand-bot/errand/internal/tools/layers"
)

// root is the top of the tree, relative to this package.
const root = "../.."

// file is one parsed Go file.
type file struct {
	path string // from the top of the tree, with slashes
	fset *token.FileSet
	ast  *ast.File
	data []byte
}

// pkg returns the package's path from the top of the tree.
func (f file) pkg() string { return filepath.ToSlash(filepath.Dir(f.path)) }

func (f file) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

// line returns the line of a position.
func (f file) line(p token.Pos) int { return f.fset.Position(p).Line }

// files returns the files of the tree that end in suffix. Everything is read by this process, so that
// the test cache notices every change.
func files(suffix string) ([]string, error) { return layers.Files(root, suffix) }

// parseTree parses every Go file, once for all tests. They must not change the result.
var parseTree = sync.OnceValues(func() ([]file, error) {
	paths, err := files(".go")
	if err != nil {
		return nil, err
	}
	var list []file
	for _, path := range paths {
		f := file{path: path, fset: token.NewFileSet()}
		if f.data, err = os.ReadFile(filepath.Join(root, path)); err != nil {
			return nil, err
		}
		if f.ast, err = parser.ParseFile(f.fset, path, f.data, parser.ParseComments); err != nil {
			return nil, err
		}
		list = append(list, f)
	}
	return list, nil
})

// goFiles returns every Go file of the tree.
func goFiles(t *testing.T) []file {
	t.Helper()
	list, err := parseTree()
	if err != nil {
		t.Fatal(err)
	}
	if len(list) < 100 {
		t.Fatalf("only %d Go files: this is not the tree", len(list))
	}
	return list
}

// read reads a file of the tree.
func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return data
}
