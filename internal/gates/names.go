package gates

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// names are the names of files in the report that is being read.
type names struct {
	report   string
	resolved int    // those of files of the repository, also if they may be several
	unknown  string // the first that is no such name, quoted
	unclear  string // why the report cannot be used, in a sentence: a name may be several files, of which one was changed
	changed  map[string]bool
	found    map[string]match // what names lead to
	// perhaps has names that lead to no file, but end like a changed one, by the last elements of their paths.
	perhaps map[string]string
}

func newNames(report string) *names {
	return &names{report: report, changed: map[string]bool{}, found: map[string]match{}, perhaps: map[string]string{}}
}

// maxFound is how many names of a report are remembered.
const maxFound = 10_000

// resolve returns the file of the repository that the report means by a name, and false if there is none or it has no
// changed line. It looks for a name only once.
func (m *measurement) resolve(name string, find func() match) (string, bool) {
	n := m.names
	found, ok := n.found[name]
	if !ok && !m.late() {
		found = find()
		if len(name) <= maxPath && len(n.found) < maxFound {
			n.found[name] = found
		}
	}
	if found.file == "" && found.several == nil {
		if n.unknown == "" {
			n.unknown = literal(name)
		}
		if base := lastElement(name); m.bases[base] != nil && n.perhaps[base] == "" {
			n.perhaps[base] = name
		}
		return "", false
	}
	n.resolved++
	if n.unclear == "" && slices.ContainsFunc(found.several, func(file string) bool { return m.changed[file] != nil }) {
		n.unclear = fmt.Sprintf("The report %s names %s, which may be several files: %s.", quoted(n.report), literal(name), listOf(found.several))
	}
	if m.changed[found.file] == nil {
		return "", false
	}
	n.changed[found.file] = true
	return found.file, true
}

// lastElement returns the end of a path of any system.
func lastElement(name string) string {
	name = name[max(0, len(name)-maxPath):]
	return path.Base(strings.ReplaceAll(name, `\`, "/"))
}

// problem says why the report that was read cannot be used, because of the names in it. It is empty if it can be.
func (m *measurement) problem() string {
	n := m.names
	switch {
	case n.unclear != "":
		return n.unclear
	case n.resolved == 0 && n.unknown != "":
		return fmt.Sprintf("The report %s is about no file of the repository. It names %s, for example.", quoted(n.report), n.unknown)
	}
	for _, base := range slices.Sorted(maps.Keys(n.perhaps)) {
		for _, file := range m.bases[base] {
			if !n.changed[file] {
				return fmt.Sprintf("The report %s names %s, which is no file of the repository, but may be %s.",
					quoted(n.report), literal(n.perhaps[base]), quoted(file))
			}
		}
	}
	return ""
}
