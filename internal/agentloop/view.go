package agentloop

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// view shows a file or a directory.
func (e *editor) view(name string, span []int) (string, error) {
	info, err := e.root.Stat(name)
	if err != nil {
		return "", withoutOp(err)
	}
	if info.IsDir() {
		return e.list(name)
	}
	text, err := e.read(name)
	if err != nil {
		return "", err
	}
	first, last := 1, -1
	if len(span) > 0 {
		if len(span) != 2 || span[0] < 1 || span[1] != -1 && span[1] < span[0] {
			return "", fmt.Errorf("view_range %v is not a first and a last line", span)
		}
		first, last = span[0], span[1]
	}
	if last == -1 {
		last = strings.Count(text, "\n") + 1
	}
	return numbered(text, first, last), nil
}

// numbered returns lines of a text with their numbers, up to the size limit of a view.
func numbered(text string, first, last int) string {
	var b strings.Builder
	n := 0
	for line := range strings.Lines(text) {
		if n++; n < first {
			continue
		}
		if n > last {
			break
		}
		line = strings.TrimSuffix(line, "\n")
		if len(line) > maxLine {
			line = strings.ToValidUTF8(line[:maxLine], "") + " […]"
		}
		if b.Len()+len(line) > viewLimit {
			fmt.Fprintf(&b, "[The rest, from line %d on, is not shown; ask for it with view_range.]\n", n)
			break
		}
		fmt.Fprintf(&b, "%6d\t%s\n", n, line)
	}
	if b.Len() == 0 {
		return "[There are no such lines.]"
	}
	return b.String()
}

// list shows a directory's files, two levels deep, without names that begin with a dot.
func (e *editor) list(name string) (string, error) {
	var b strings.Builder
	shown := 0
	err := fs.WalkDir(e.root.FS(), name, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil // it vanished or is unreadable
		case p == name:
			return nil
		case strings.HasPrefix(path.Base(p), "."):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case shown >= dirLimit:
			b.WriteString("[There is more.]\n")
			return fs.SkipAll
		}
		shown++
		depth := strings.Count(p, "/")
		if name != "." {
			depth -= strings.Count(name, "/") + 1
		}
		if !d.IsDir() {
			b.WriteString(p + "\n")
			return nil
		}
		b.WriteString(p + "/\n")
		if depth+1 >= viewDepth {
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		return "", withoutOp(err)
	}
	if shown == 0 {
		return "[The directory is empty.]", nil
	}
	return b.String(), nil
}
