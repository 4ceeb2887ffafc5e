package publish

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"

	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/internal/forge"
)

// Bounds of a diff.
const (
	maxStat     = 60      // lines of the summary
	maxDiffFile = 1 << 20 // bytes of a file whose lines are compared
)

// A changed is a path whose content differs from the one that it is compared with.
type changed struct {
	path           string
	against        string          // the other side of the comparison, empty for the base
	before, after  forge.TreeEntry // zero if it did or does not exist
	text           string          // its part of the diff
	added, removed int             // lines
}

// netDiff compares the result of a changeset with the base, path by path. If the changeset merges m in, the result is
// compared with the merge of both: changes that come only from the base branch are left out, and a change of the base
// branch that the result lacks is shown as reverted. If both sides changed a path, the result is compared with each.
// blob reads content from GitHub.
func netDiff(cs *changeset.Changeset, base map[string]forge.TreeEntry, m *merge, blob func(id string) ([]byte, error)) ([]changed, error) {
	final, paths := maps.Clone(base), map[string]bool{}
	if final == nil {
		final = map[string]forge.TreeEntry{}
	}
	for _, c := range cs.Commits {
		for _, ch := range c.Changes {
			paths[ch.Path] = true
			if ch.Deleted() {
				delete(final, ch.Path)
				continue
			}
			final[ch.Path] = forge.TreeEntry{Mode: string(ch.Mode), ID: ch.Blob}
		}
	}
	if m == nil {
		m = &merge{theirs: base, fork: base}
	}
	for _, tree := range []map[string]forge.TreeEntry{base, m.theirs} {
		for path := range tree {
			if base[path] != m.theirs[path] {
				paths[path] = true
			}
		}
	}
	var list []changed
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		sides := []changed{{path: path, after: final[path]}}
		var clean bool
		if sides[0].before, clean = changeset.MergePath(m.fork[path], base[path], m.theirs[path]); !clean {
			sides[0].against = "the base branch"
			sides = append(sides, changed{path: path, before: base[path], after: final[path], against: "the branch before the merge"})
		}
		for _, f := range sides {
			if f.before == f.after {
				continue
			}
			if err := f.read(cs, blob); err != nil {
				return nil, err
			}
			list = append(list, f)
		}
	}
	return list, nil
}

// read reads both contents and writes the path's part of the diff.
func (f *changed) read(cs *changeset.Changeset, blob func(id string) ([]byte, error)) error {
	var contents [2][]byte
	for i, e := range []forge.TreeEntry{f.before, f.after} {
		var known, err = cs.Blobs[e.ID], error(nil)
		if known == nil && e.Mode != "" && f.before.ID != f.after.ID && e.Mode != string(changeset.ModeSubmodule) {
			known, err = blob(e.ID)
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", f.path, err)
		}
		contents[i] = known
	}
	f.compare(contents[0], contents[1])
	return nil
}

// compare writes the path's part of the diff.
func (f *changed) compare(before, after []byte) {
	name := visible(f.path)
	var b strings.Builder
	fmt.Fprintf(&b, "diff a/%s b/%s\n", name, name)
	if f.against != "" {
		fmt.Fprintf(&b, "compared with %s; both sides of the merge changed it\n", f.against)
	}
	switch {
	case f.before.Mode == "":
		fmt.Fprintf(&b, "new %s\n", kindOf(f.after.Mode))
	case f.after.Mode == "":
		fmt.Fprintf(&b, "deleted %s\n", kindOf(f.before.Mode))
	case f.before.Mode != f.after.Mode:
		fmt.Fprintf(&b, "%s becomes %s\n", kindOf(f.before.Mode), kindOf(f.after.Mode))
	}
	switch {
	case f.before.ID == f.after.ID:
	case !lines(before) || !lines(after):
		fmt.Fprintf(&b, "not shown line by line: %d bytes (%s) before, %d bytes (%s) after\n", len(before), orNone(f.before.ID), len(after), orNone(f.after.ID))
	default:
		diff := udiff.Unified("a/"+name, "b/"+name, visible(string(before)), visible(string(after)))
		f.count(diff)
		b.WriteString(diff)
	}
	f.text = b.String()
}

// count counts the lines that a unified diff adds and removes.
func (f *changed) count(diff string) {
	inHunk := false
	for l := range strings.Lines(diff) {
		switch {
		case strings.HasPrefix(l, "@@"):
			inHunk = true
		case inHunk && l[0] == '+':
			f.added++
		case inHunk && l[0] == '-':
			f.removed++
		}
	}
}

// diffText returns the text that people approve: the commits' messages, then the differences.
func diffText(cs *changeset.Changeset, m *merge, files []changed) string {
	var b strings.Builder
	for _, c := range cs.Commits {
		fmt.Fprintf(&b, "commit %s\n", c.ID)
		for l := range strings.Lines(visible(strings.TrimSpace(c.Message))) {
			b.WriteString("    " + strings.TrimRight(l, "\n") + "\n")
		}
		b.WriteString("\n")
	}
	if m != nil {
		fmt.Fprintf(&b, "Commit %s of the base branch is merged in. Its unchanged parts are not shown.\n\n", m.commit)
	}
	for _, f := range files {
		b.WriteString(strings.TrimRight(f.text, "\n") + "\n\n")
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// statLines sums the paths up, a line each.
func statLines(files []changed) []string {
	var list []string
	for i, f := range files {
		if i == maxStat {
			return append(list, fmt.Sprintf("and %d more paths", len(files)-i))
		}
		what := fmt.Sprintf("+%d −%d", f.added, f.removed)
		switch {
		case f.before.Mode == "":
			what += ", new " + kindOf(f.after.Mode)
		case f.after.Mode == "":
			what += ", deleted"
		case f.before.Mode != f.after.Mode:
			what += ", now " + kindOf(f.after.Mode)
		}
		if f.against != "" {
			what += ", compared with " + f.against
		}
		path := []rune(visible(f.path))
		if len(path) > 200 {
			path = append(path[:200], '…')
		}
		list = append(list, string(path)+": "+what)
	}
	return list
}

func kindOf(mode string) string {
	switch changeset.Mode(mode) {
	case changeset.ModeFile:
		return "file"
	case changeset.ModeExecutable:
		return "executable file"
	case changeset.ModeSymlink:
		return "symbolic link"
	case changeset.ModeSubmodule:
		return "submodule"
	}
	return "entry of mode " + mode
}

func orNone(id string) string {
	if id == "" {
		return "none"
	}
	return id
}

// lines reports whether content is text that can be compared line by line.
func lines(content []byte) bool {
	return len(content) <= maxDiffFile && utf8.Valid(content) && bytes.IndexByte(content, 0) < 0
}

// visible writes invisible characters, and those that change the direction of text, as code points.
func visible(text string) string {
	if !strings.ContainsFunc(text, unseen) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if unseen(r) {
			fmt.Fprintf(&b, "⟨U+%04X⟩", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func unseen(r rune) bool {
	return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co))
}
