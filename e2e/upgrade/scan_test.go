package upgrade_test

import (
	"go/ast"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/errand-bot/errand/handlers"
)

var (
	noSpaces = regexp.MustCompile(`^[A-Za-z0-9_./:%*#+-]{2,}$`)
	metric   = regexp.MustCompile(`^errand_[a-z_]+$`)
	gauge    = regexp.MustCompile(`^[a-z_]+$`)
	pattern  = regexp.MustCompile(`^((GET|POST) )?/\S*$`)
	marker   = regexp.MustCompile(`<!-- errand:[^>]*(-->)?`)
)

// scan collects texts from all shipped code: "markers" in comments, "metrics" with their labels, HTTP "routes",
// "named-errand" that begin with errand's name (labels of VMs, cookies, headers), "status" keys of the pages' JSON, and
// "domain", all texts without spaces below state: keys of jobs and of the store, reasons, classes.
func scan(t *testing.T) map[string]map[string]bool {
	t.Helper()
	s := scanner{found: map[string]map[string]bool{}}
	for _, top := range []string{"cmd", "handlers", "internal", "prompts", "state"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return err
			}
			dir, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			dir = filepath.ToSlash(dir)
			if shipped(dir) {
				s.dir = dir
				for _, f := range parse(t, token.NewFileSet(), dir) {
					ast.Inspect(f, s.visit)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return s.found
}

// shipped reports whether a directory is part of the installed programs, not of simulators, tests or tools.
func shipped(dir string) bool {
	if strings.Contains(dir, "internal/tools") {
		return false
	}
	for _, part := range strings.Split(dir, "/") {
		if strings.HasSuffix(part, "test") || slices.Contains([]string{"testdata", "sim", "demo", "errand-demo", "costs"}, part) {
			return false
		}
	}
	return true
}

type scanner struct {
	dir   string
	found map[string]map[string]bool
}

func (s *scanner) add(group, text string) {
	if s.found[group] == nil {
		s.found[group] = map[string]bool{}
	}
	s.found[group][text] = true
}

// text returns the value of a string literal.
func text(n ast.Node) (string, bool) {
	lit, ok := n.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	v, err := strconv.Unquote(lit.Value)
	return v, err == nil
}

func (s *scanner) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.ImportSpec:
		return false
	case *ast.Field:
		s.tag(n)
		if n.Tag != nil {
			ast.Inspect(n.Type, s.visit)
			return false
		}
	case *ast.CallExpr:
		s.call(n)
	case *ast.CompositeLit:
		s.row(n)
	case *ast.BasicLit:
		if v, ok := text(n); ok {
			s.literal(v)
		}
	}
	return true
}

func (s *scanner) literal(v string) {
	if m := marker.FindString(v); m != "" {
		s.add("markers", m)
	}
	if strings.HasPrefix(v, "errand") && noSpaces.MatchString(v) {
		s.add("named-errand", v)
	}
	if s.dir == "state" || strings.HasPrefix(s.dir, "state/") {
		if noSpaces.MatchString(v) {
			s.add("domain", v)
		}
	}
}

// admin reports whether the directory belongs to the operator's pages.
func (s *scanner) admin() bool {
	return s.dir == "internal/admin" || strings.HasPrefix(s.dir, "internal/admin/")
}

// tag records the JSON names of the pages.
func (s *scanner) tag(f *ast.Field) {
	if f.Tag == nil || !s.admin() {
		return
	}
	v, err := strconv.Unquote(f.Tag.Value)
	if err != nil {
		return
	}
	if name, _, _ := strings.Cut(reflect.StructTag(v).Get("json"), ","); name != "" && name != "-" {
		s.add("status", name)
	}
}

// row records the route of a row of the pages' table of routes.
func (s *scanner) row(c *ast.CompositeLit) {
	if !s.admin() || len(c.Elts) == 0 {
		return
	}
	if v, ok := text(c.Elts[0]); ok && pattern.MatchString(v) {
		s.add("routes", v)
	}
}

// call records routes and metrics: a call with a metric's name among its arguments also has the names of its labels.
// Gauges of the store are described by a name without errand's prefix, a sentence, and labels.
func (s *scanner) call(c *ast.CallExpr) {
	if sel, ok := c.Fun.(*ast.SelectorExpr); ok && len(c.Args) > 1 && (sel.Sel.Name == "Handle" || sel.Sel.Name == "HandleFunc") {
		if v, ok := text(c.Args[0]); ok {
			s.add("routes", v)
		}
		if named, ok := c.Args[0].(*ast.SelectorExpr); ok && named.Sel.Name == "HookPath" {
			s.add("routes", handlers.HookPath)
		}
	}
	var name string
	var labels []string
	if len(c.Args) > 1 && s.admin() {
		first, _ := text(c.Args[0])
		if help, _ := text(c.Args[1]); gauge.MatchString(first) && strings.Contains(help, " ") && strings.HasSuffix(help, ".") {
			for _, arg := range c.Args[2:] {
				label, _ := text(arg)
				labels = append(labels, label)
			}
			slices.Sort(labels)
			s.add("metrics", strings.TrimSpace("errand_"+first+" "+strings.Join(labels, " ")))
			return
		}
	}
	for _, arg := range c.Args {
		ast.Inspect(arg, func(n ast.Node) bool {
			v, ok := text(n)
			switch {
			case ok && metric.MatchString(v) && name == "":
				name = v
			case ok && noSpaces.MatchString(v):
				labels = append(labels, v)
			}
			return true
		})
	}
	if name != "" {
		slices.Sort(labels)
		s.add("metrics", strings.TrimSpace(name+" "+strings.Join(slices.Compact(labels), " ")))
	}
}
