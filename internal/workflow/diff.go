package workflow

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

// changed is a path that a changeset leaves other than the base has it.
type changed struct {
	path           string
	before, after  forge.TreeEntry // zero if it was or is not there
	text           string          // its part of the diff
	added, removed int             // lines
}

// netDiff compares what a changeset comes to with the base, path by path. blob reads what the base has.
func netDiff(cs *changeset.Changeset, base map[string]forge.TreeEntry, blob func(id string) ([]byte, error)) ([]changed, error) {
	final := map[string]forge.TreeEntry{}
	for _, c := range cs.Commits {
		for _, ch := range c.Changes {
			final[ch.Path] = forge.TreeEntry{Mode: string(ch.Mode), ID: ch.Blob}
		}
	}
	var list []changed
	for _, path := range slices.Sorted(maps.Keys(final)) {
		f := changed{path: path, before: base[path], after: final[path]}
		if f.before.Mode == f.after.Mode && f.before.ID == f.after.ID {
			continue
		}
		var before []byte
		var err error
		if f.before.Mode != "" && f.before.ID != f.after.ID && f.before.Mode != string(changeset.ModeSubmodule) {
			if before, err = blob(f.before.ID); err != nil {
				return nil, fmt.Errorf("read %s as it was: %w", path, err)
			}
		}
		f.compare(before, cs.Blobs[f.after.ID])
		list = append(list, f)
	}
	return list, nil
}

// compare writes the path's part of the diff.
func (f *changed) compare(before, after []byte) {
	name := visible(f.path)
	var b strings.Builder
	fmt.Fprintf(&b, "diff a/%s b/%s\n", name, name)
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

// diffText is what people read before they approve: the commits' messages, then what they come to.
func diffText(cs *changeset.Changeset, files []changed) string {
	var b strings.Builder
	for _, c := range cs.Commits {
		fmt.Fprintf(&b, "commit %s\n", c.ID)
		for l := range strings.Lines(visible(strings.TrimSpace(c.Message))) {
			b.WriteString("    " + strings.TrimRight(l, "\n") + "\n")
		}
		b.WriteString("\n")
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

// visible writes out what a reader would not see, or what would turn the order of what is seen around.
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
