package gates

import (
	"cmp"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// files finds the files of the repository that reports name.
type files struct {
	tracked map[string]bool
	byBase  map[string][]string // by the last element of the path
	roots   []string
	modules []module
}

// match is what a name in a report leads to: one file of the repository, or several that it may be, in order, or none.
type match struct {
	file    string
	several []string
}

// oneOf returns the match of a name that may be each of some files.
func oneOf(list []string) match {
	slices.Sort(list)
	if list = slices.Compact(list); len(list) == 1 {
		return match{file: list[0]}
	}
	return match{several: list}
}

// module is a Go module. Its folder is empty for the root of the repository.
type module struct {
	path, dir string
}

// maxGoMod is how many bytes of a go.mod are read.
const maxGoMod = 1 << 20

func newFiles(in Input, late func() bool) *files {
	f := &files{tracked: make(map[string]bool, len(in.Tracked)), byBase: map[string][]string{}, roots: in.Roots}
	for _, name := range in.Tracked {
		f.tracked[name] = true
		f.byBase[path.Base(name)] = append(f.byBase[path.Base(name)], name)
	}
	for _, name := range f.byBase["go.mod"] {
		if late() {
			break
		}
		if data, err := readStart(in.Tree, name, maxGoMod); err == nil {
			if p := modfile.ModulePath(data); p != "" {
				f.modules = append(f.modules, module{p, strings.TrimPrefix(path.Dir(name), ".")})
			}
		}
	}
	slices.SortFunc(f.modules, func(a, b module) int { return cmp.Or(cmp.Compare(len(b.path), len(a.path)), cmp.Compare(a.dir, b.dir)) })
	return f
}

// readStart reads the beginning of a regular file.
func readStart(tree fs.FS, name string, most int64) ([]byte, error) {
	file, err := openRegular(tree, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return io.ReadAll(io.LimitReader(file, most))
}

// goFile returns the file that a cover profile names: by the path of its package, or like any other report. Of several
// modules with one path those count whose folders have the most in common with the report's.
func (f *files) goFile(name, report string) match {
	var best []string
	longest, most := "", -1
	for _, m := range f.modules { // those with the longest paths first
		rest, ok := strings.CutPrefix(name, m.path+"/")
		file := path.Join(m.dir, rest)
		if !ok || !f.tracked[file] || len(m.path) < len(longest) {
			continue
		}
		switch n := shared(path.Join(m.dir, "go.mod"), report); {
		case n > most:
			longest, most, best = m.path, n, []string{file}
		case n == most:
			best = append(best, file)
		}
	}
	if len(best) > 0 {
		return oneOf(best)
	}
	return f.find(name, nil, report)
}

// maxPath bounds a path in a report, in bytes.
const maxPath = 4096

// find returns the file that a report names. sources are the folders to which names are relative; report is the path of
// the report. A name is looked for, in this order: as an absolute path; below each source; in the report's folder and those
// above it; and as the end of a path.
func (f *files) find(name string, sources []string, report string) match {
	if name == "" || len(name) > maxPath {
		return match{}
	}
	if !f.tracked[name] {
		name = strings.ReplaceAll(name, `\`, "/")
	}
	if f.byBase[path.Base(path.Clean(name))] == nil {
		return match{} // most foreign names take no more time
	}
	if rest, ok := f.relative(name); ok || path.IsAbs(name) {
		return match{file: f.known(rest)}
	}
	if found := f.inSources(name, sources, report); len(found) > 0 {
		return oneOf(found)
	}
	if file := f.above(report, name); file != "" {
		return match{file: file}
	}
	return f.bySuffix(path.Clean(name), report)
}

// inSources returns the files of a name in source folders.
func (f *files) inSources(name string, sources []string, report string) (found []string) {
	for _, source := range sources {
		file := ""
		source = strings.ReplaceAll(source, `\`, "/")
		if rest, ok := f.relative(source); ok {
			file = f.known(path.Join(rest, name))
		} else if !path.IsAbs(source) {
			file = f.above(report, path.Join(source, name))
		}
		if file != "" {
			found = append(found, file)
		}
	}
	return found
}

// relative returns the path in the repository of an absolute path. Of the root it is ".".
func (f *files) relative(name string) (string, bool) {
	if !path.IsAbs(name) {
		return "", false
	}
	name = path.Clean(name)
	for _, root := range f.roots {
		if name == root {
			return ".", true
		}
		if rest, ok := strings.CutPrefix(name, strings.TrimSuffix(root, "/")+"/"); ok {
			return rest, true
		}
	}
	return "", false
}

func (f *files) known(file string) string {
	if f.tracked[file] {
		return file
	}
	return ""
}

// above looks for a name relative to the folder of the report, then to each folder above it.
func (f *files) above(report, name string) string {
	for dir := path.Dir(report); ; dir = path.Dir(dir) {
		if file := f.known(path.Join(dir, name)); file != "" {
			return file
		}
		if dir == "." {
			return ""
		}
	}
}

// bySuffix returns the files whose paths end with a name. Of several these are the ones that share the most folders with
// the report.
func (f *files) bySuffix(name, report string) match {
	var best []string
	most := -1
	for _, file := range f.byBase[path.Base(name)] {
		if !strings.HasSuffix(file, "/"+name) {
			continue
		}
		switch n := shared(file, report); {
		case n > most:
			best, most = []string{file}, n
		case n == most:
			best = append(best, file)
		}
	}
	return oneOf(best)
}

// shared returns how many folders the beginnings of two paths have in common.
func shared(a, b string) int {
	x, y := strings.Split(path.Dir(a), "/"), strings.Split(path.Dir(b), "/")
	n := 0
	for n < len(x) && n < len(y) && x[n] == y[n] {
		n++
	}
	return n
}
