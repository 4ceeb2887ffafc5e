package simgithub

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// FileChange is one file of a diff.
type FileChange struct {
	Path      string
	OldPath   string // of a renamed file, else empty
	Status    string // added, removed, modified, renamed or changed
	SHA       string // blob after the change; before it for a removed file
	Mode      string // after the change
	Additions int
	Deletions int
	Patch     string // hunks in unified form; empty for binary files
}

// diff lists what changed between two commits, with renames found.
func (r *repository) diff(from, to string) ([]FileChange, error) {
	if from == "" {
		from = emptyTree
	}
	args := []string{"diff", "--no-ext-diff", "--no-color", "-M"}
	raw, err := r.out(append(args, "--raw", "-z", "--no-abbrev", from, to)...)
	if err != nil {
		return nil, err
	}
	list := parseRaw(raw)
	text, err := r.out(append(args, "-p", from, to)...)
	if err != nil {
		return nil, err
	}
	patches := splitPatches(text)
	for n := range list {
		if n >= len(patches) {
			break
		}
		list[n].Patch = patches[n]
		for line := range strings.Lines(patches[n]) {
			switch line[0] {
			case '+':
				list[n].Additions++
			case '-':
				list[n].Deletions++
			}
		}
	}
	return list, nil
}

// emptyTree is the id that git gives to a tree without entries.
const emptyTree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

// parseRaw reads `git diff --raw -z`.
func parseRaw(raw string) []FileChange {
	f := strings.Split(strings.TrimSuffix(raw, "\x00"), "\x00")
	var list []FileChange
	for n := 0; n+1 < len(f); {
		meta := strings.Fields(strings.TrimPrefix(f[n], ":"))
		if len(meta) != 5 {
			break
		}
		c := FileChange{Path: f[n+1], SHA: meta[3], Mode: meta[1]}
		n += 2
		switch meta[4][0] {
		case 'A':
			c.Status = "added"
		case 'D':
			c.Status, c.SHA, c.Mode = "removed", meta[2], meta[0]
		case 'R':
			c.Status, c.OldPath = "renamed", c.Path
			if n < len(f) {
				c.Path = f[n]
				n++
			}
		case 'T':
			c.Status = "changed"
		default:
			c.Status = "modified"
		}
		list = append(list, c)
	}
	return list
}

// splitPatches cuts a diff into one text per file, from its first hunk on; "" for a file without hunks.
func splitPatches(text string) []string {
	var out []string
	for _, section := range strings.Split("\n"+text, "\ndiff --git ")[1:] {
		n := strings.Index(section, "\n@@ ")
		if n < 0 {
			out = append(out, "")
			continue
		}
		out = append(out, strings.TrimSuffix(section[n+1:], "\n"))
	}
	return out
}

// place is a line of one side of a diff.
type place struct {
	from, to, path string
	line           int
	left           bool
}

// hunkAt gives the hunk that holds a line, from its header to that line; line 0 means the file as a whole.
func (r *repository) hunkAt(at place) (string, bool) {
	files, err := r.diff(at.from, at.to)
	if err != nil {
		return "", false
	}
	for _, f := range files {
		if f.Path != at.path {
			continue
		}
		if at.line == 0 {
			return "", true
		}
		for _, h := range parseHunks(f.Patch) {
			if text, ok := h.upTo(at.line, at.left); ok {
				return text, true
			}
		}
	}
	return "", false
}

// hunk is one part of a patch.
type hunk struct {
	oldStart, oldCount, newStart, newCount int
	lines                                  []string // the header first
}

var hunkHeader = regexp.MustCompile(`^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@`)

func parseHunks(patch string) []hunk {
	var list []hunk
	for _, line := range strings.Split(patch, "\n") {
		if m := hunkHeader.FindStringSubmatch(line); m != nil {
			list = append(list, hunk{
				oldStart: atoi(m[1], 0), oldCount: atoi(m[2], 1), newStart: atoi(m[3], 0), newCount: atoi(m[4], 1),
			})
		}
		if n := len(list); n > 0 {
			list[n-1].lines = append(list[n-1].lines, line)
		}
	}
	return list
}

// upTo is the hunk's text up to a line of one of its sides.
func (h hunk) upTo(line int, left bool) (string, bool) {
	oldLine, newLine := h.oldStart-1, h.newStart-1
	for n, text := range h.lines {
		if n == 0 || text == "" {
			continue
		}
		switch text[0] {
		case '+':
			newLine++
		case '-':
			oldLine++
		case ' ':
			oldLine++
			newLine++
		default:
			continue
		}
		if !left && newLine == line && text[0] != '-' || left && oldLine == line && text[0] != '+' {
			return strings.Join(h.lines[:n+1], "\n"), true
		}
	}
	return "", false
}

// countBetween tells how many commits head has that base lacks, and the other way round.
func (r *repository) countBetween(base, head string) (ahead, behind int, err error) {
	out, err := r.out("rev-list", "--left-right", "--count", base+"..."+head)
	if err != nil {
		return 0, 0, err
	}
	if _, err := fmt.Sscan(out, &behind, &ahead); err != nil {
		return 0, 0, fmt.Errorf("count commits between %s and %s: %w", base, head, err)
	}
	return ahead, behind, nil
}

// followLine returns by how many lines a line of a file moved from one commit to the next, and whether it changed.
func (r *repository) followLine(path string, line int, before, after string) (shift int, changed bool, err error) {
	patch, err := r.out("diff", "--no-color", "-U0", before, after, "--", path)
	if err != nil {
		return 0, false, err
	}
	for _, h := range parseHunks(patch) {
		switch {
		case h.oldCount == 0 && h.oldStart >= line, h.oldCount > 0 && h.oldStart > line: // below
		case h.oldCount > 0 && line < h.oldStart+h.oldCount: // the line itself
			return 0, true, nil
		default:
			shift += h.newCount - h.oldCount
		}
	}
	return shift, false, nil
}

// changedFiles lists which files differ between two commits, without their patches and without looking for renames.
func (r *repository) changedFiles(from, to string) []FileChange {
	raw, err := r.out("diff", "--no-renames", "--raw", "-z", "--no-abbrev", cmp.Or(from, emptyTree), to)
	if err != nil {
		return nil
	}
	return parseRaw(raw)
}

// atoi reads a number; missing is the answer for anything else.
func atoi(s string, missing int) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return missing
	}
	return n
}
