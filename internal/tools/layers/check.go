package layers

import (
	"fmt"
	"slices"
	"strings"
)

// here is the file with the rules, for error messages.
const here = "internal/tools/layers/layers.go"

// Check returns the faults of the imports of packages, and those of the rules themselves. It needs all packages of the
// tree, because an exception that none of them needs is a fault.
func Check(packages []Package) []string {
	var faults []string
	used := map[Exception]bool{}
	for _, p := range packages {
		l, ok := Of(p.Path)
		if !ok {
			faults = append(faults, fmt.Sprintf("%s belongs to no layer: in %s, add its path (or that of the folder above it) to the Paths of a layer in All", p.Path, here))
			continue
		}
		for _, to := range p.Imports {
			if why := l.refuses(p.Path, to, false, used); why != "" {
				faults = append(faults, fmt.Sprintf("%s may not import %s: %s", p.Path, strings.TrimPrefix(to, Module), why))
			}
		}
		for _, to := range p.TestImports {
			if why := l.refuses(p.Path, to, true, used); why != "" {
				faults = append(faults, fmt.Sprintf("the tests of %s may not import %s: %s", p.Path, strings.TrimPrefix(to, Module), why))
			}
		}
	}
	for _, e := range Exceptions() {
		if !used[e] {
			faults = append(faults, fmt.Sprintf("the exception from %s to %s is unused: remove it from Exceptions in %s", e.From, e.To, here))
		}
	}
	return append(faults, order()...)
}

// refuses returns why a package of the layer may not import another one, or "" if it may.
func (l Layer) refuses(from, to string, test bool, used map[Exception]bool) string {
	to, ours := strings.CutPrefix(to, Module)
	for _, r := range Importers() {
		if !test && withinAny(to, r.Of) && !withinAny(from, r.Of) && !withinAny(from, r.Only) {
			return fmt.Sprintf("only %s may, since %s (Importers in %s)", strings.Join(r.Only, ", "), r.Why, here)
		}
	}
	if !ours {
		if library := strings.Contains(strings.Split(to, "/")[0], "."); library && l.Name == standardOnly && !test {
			return "it may import only the standard library"
		}
		return ""
	}
	target, ok := Of(to)
	switch {
	case !ok:
		return "" // reported separately
	case forTest(to) && !test && !forTest(from) && l.Name != "checks":
		return "it is for tests"
	case l.Name == target.Name, slices.Contains(l.May, target.Name):
		return ""
	// A simulator that shares code with errand shares its bugs, and so does its test.
	case test && l.Name != "simulators" && forTest(to):
		return ""
	case (test || forTest(from)) && l.Name != "simulators" && withinAny(to, forTests()):
		return ""
	}
	for _, e := range Exceptions() {
		if within(from, e.From) && within(to, e.To) && (test || forTest(from) || !e.TestsOnly) {
			used[e] = true
			return ""
		}
	}
	return fmt.Sprintf("it belongs to the layer %q, but the layer %q may only import %s (All in %s)", target.Name, l.Name, l.may(), here)
}

// may returns the names of the layers that a layer may import.
func (l Layer) may() string {
	if len(l.May) == 0 {
		return "no other"
	}
	return "only " + strings.Join(l.May, ", ")
}

// forTest reports whether a package helps tests, by its name, such as fleettest and kvtest.
func forTest(pkg string) bool { return strings.HasSuffix(pkg, "test") }

// order returns the faults of the list of layers: each may import only layers before it, and a path
// belongs to one of them.
func order() []string {
	var faults []string
	var earlier, paths []string
	for _, l := range All() {
		for _, name := range l.May {
			if !slices.Contains(earlier, name) {
				faults = append(faults, fmt.Sprintf("the layer %q may import %q, which is not before it in %s", l.Name, name, here))
			}
		}
		for _, path := range l.Paths {
			if slices.Contains(paths, path) {
				faults = append(faults, fmt.Sprintf("%s belongs to two layers in %s", path, here))
			}
		}
		earlier, paths = append(earlier, l.Name), append(paths, l.Paths...)
	}
	return faults
}
