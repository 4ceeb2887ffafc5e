package upgrade_test

import (
	"encoding"
	"encoding/json"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/errand-bot/errand/state/event"
)

// module is the import path prefix of this repository's packages, and root is their directory.
const module = "github.com/errand-bot/errand/"

var root = filepath.Join("..", "..")

// shape is the form of a type in JSON (or YAML): the paths of its leaves, with the Go type of each.
type shape map[string]reflect.Type

// shapeOf returns the shape of a type under a name. Embedded structs are flat, as they are in JSON. A type that
// contains itself is followed once.
func shapeOf(name string, t reflect.Type, tag string) shape {
	s := shape{}
	s.add(name, t, tag, nil)
	return s
}

func (s shape) add(path string, t reflect.Type, tag string, within []reflect.Type) {
	if slices.Contains(within, t) {
		s[path+" (again)"] = t
		return
	}
	if t == reflect.TypeFor[json.RawMessage]() && path == "job.event" {
		s.event(path, tag, within)
		return
	}
	own := t.Implements(reflect.TypeFor[json.Marshaler]()) || t.Implements(reflect.TypeFor[encoding.TextMarshaler]())
	switch {
	case own:
		s[path] = t
	case t.Kind() == reflect.Pointer:
		s.add(path, t.Elem(), tag, within)
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		s[path] = t
	case t.Kind() == reflect.Slice || t.Kind() == reflect.Array:
		s.add(path+"[]", t.Elem(), tag, within)
	case t.Kind() == reflect.Map:
		s.add(path+".*", t.Elem(), tag, within)
	case t.Kind() == reflect.Struct:
		s.fields(path, t, tag, append(slices.Clone(within), t))
	default:
		s[path] = t
	}
}

// event adds the only value that is stored as raw JSON inside another type: an event that waits for a permission check.
func (s shape) event(path, tag string, within []reflect.Type) {
	s[path+".kind"] = reflect.TypeFor[event.Kind]()
	s.fields(path, reflect.TypeFor[event.Event](), tag, within)
	for _, p := range []event.Payload{event.Triggered{}, event.Commented{}, event.IssueEdited{}, event.CommentEdited{}, event.Thumb{}, event.Reviewed{}} {
		s.fields(path, reflect.TypeOf(p), tag, within)
	}
}

func (s shape) fields(path string, t reflect.Type, tag string, within []reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get(tag), ",")
		flat := f.Anonymous && name == "" || slices.Contains(strings.Split(options, ","), "inline")
		switch {
		case name == "-" || !f.IsExported() && !f.Anonymous:
		case flat:
			inner := f.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			s.fields(path, inner, tag, within)
		case name == "" && tag == "yaml":
			s.add(path+"."+strings.ToLower(f.Name), f.Type, tag, within)
		case name == "":
			s.add(path+"."+f.Name, f.Type, tag, within)
		default:
			s.add(path+"."+name, f.Type, tag, within)
		}
	}
}

// values are the declared constants of named string types, by type.
type values struct {
	mu    sync.Mutex
	known map[string]map[string][]string // by the package's path and the type's name
}

// of returns the declared constants of a type, or nil if it has none.
func (v *values) of(t *testing.T, typ reflect.Type) []string {
	t.Helper()
	dir, ours := strings.CutPrefix(typ.PkgPath(), module)
	if !ours || typ.Kind() != reflect.String {
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.known == nil {
		v.known = map[string]map[string][]string{}
	}
	if v.known[dir] == nil {
		v.known[dir] = constants(t, dir)
	}
	return v.known[dir][typ.Name()]
}

// constants returns the constant strings that a package declares, by the name of their type; "" has the untyped ones
// and those of type string. Declarations in other packages are ignored; constants can be computed without them.
func constants(t *testing.T, dir string) map[string][]string {
	t.Helper()
	fset := token.NewFileSet()
	conf := types.Config{Importer: nothing{}, Error: func(error) {}}
	pkg, _ := conf.Check(dir, fset, parse(t, fset, dir), nil) // errors are unavoidable
	out := map[string][]string{}
	for _, name := range pkg.Scope().Names() {
		c, ok := pkg.Scope().Lookup(name).(*types.Const)
		if !ok || c.Val() == nil || c.Val().Kind() != constant.String {
			continue
		}
		typ := ""
		if named, ok := c.Type().(*types.Named); ok {
			typ = named.Obj().Name()
		}
		out[typ] = append(out[typ], constant.StringVal(c.Val()))
	}
	for typ := range out {
		slices.Sort(out[typ])
	}
	return out
}

// parse parses the Go files of a directory, without tests.
func parse(t *testing.T, fset *token.FileSet, dir string) []*ast.File {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(root, dir))
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, filepath.Join(root, dir, e.Name()), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}

// nothing is an importer for which every package is empty.
type nothing struct{}

func (nothing) Import(path string) (*types.Package, error) {
	p := types.NewPackage(path, path[strings.LastIndexByte(path, '/')+1:])
	p.MarkComplete()
	return p, nil
}
