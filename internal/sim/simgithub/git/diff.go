package git

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

// Diff returns the files that differ between two commits, with their patches. It detects renames.
func (r *Repository) Diff(from, to string) ([]FileChange, error) {
	if from == "" {
		from = emptyTree
	}
	out, err := r.fixedOutput("diff", "--no-ext-diff", "--no-color", "-M", "--raw", "-z", "-p", "--no-abbrev", from, to)
	if err != nil {
		return nil, err
	}
	raw, text, _ := strings.Cut(out, "\x00\x00") // the end of the list, and the separator
	list := parseRaw(raw)
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

// emptyTree is the id of a tree without entries.
const emptyTree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

// parseRaw parses the output of `git diff --raw -z`.
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

// splitPatches splits a diff into the hunks of each file; "" for a file without hunks.
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

// Place is a line of a file in the diff between two commits: of the old version if Left is set, else of the new one.
type Place struct {
	From, To, Path string
	Line           int
	Left           bool
}

// HunkAt returns the hunk that contains a line, from its header to that line. Line 0 means the file as a whole, for
// which the hunk is empty. It returns false if the place is not in the diff.
func (r *Repository) HunkAt(at Place) (string, bool) {
	files, err := r.Diff(at.From, at.To)
	if err != nil {
		return "", false
	}
	for _, f := range files {
		if f.Path != at.Path {
			continue
		}
		if at.Line == 0 {
			return "", true
		}
		for _, h := range ParseHunks(f.Patch) {
			if text, ok := h.upTo(at.Line, at.Left); ok {
				return text, true
			}
		}
	}
	return "", false
}

// Hunk is a hunk of a patch; its first line is the header.
type Hunk struct {
	OldStart, oldCount, NewStart, newCount int
	Lines                                  []string
}

var hunkHeader = regexp.MustCompile(`^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@`)

// ParseHunks returns the hunks of a patch.
func ParseHunks(patch string) []Hunk {
	var list []Hunk
	for _, line := range strings.Split(patch, "\n") {
		if m := hunkHeader.FindStringSubmatch(line); m != nil {
			list = append(list, Hunk{
				OldStart: atoi(m[1], 0), oldCount: atoi(m[2], 1), NewStart: atoi(m[3], 0), newCount: atoi(m[4], 1),
			})
		}
		if n := len(list); n > 0 {
			list[n-1].Lines = append(list[n-1].Lines, line)
		}
	}
	return list
}

// upTo returns the hunk up to a line of the old version (left) or of the new one, or false if it does not contain the
// line.
func (h Hunk) upTo(line int, left bool) (string, bool) {
	oldLine, newLine := h.OldStart-1, h.NewStart-1
	for n, text := range h.Lines {
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
			return strings.Join(h.Lines[:n+1], "\n"), true
		}
	}
	return "", false
}

// CountBetween returns by how many commits head is ahead of base, and by how many behind it.
func (r *Repository) CountBetween(base, head string) (ahead, behind int, err error) {
	out, err := r.fixedOutput("rev-list", "--left-right", "--count", base+"..."+head)
	if err != nil {
		return 0, 0, err
	}
	if _, err := fmt.Sscan(out, &behind, &ahead); err != nil {
		return 0, 0, fmt.Errorf("count commits between %s and %s: %w", base, head, err)
	}
	return ahead, behind, nil
}

// FollowLine returns by how many lines a line of a file shifted between two commits, and whether the line itself
// changed.
func (r *Repository) FollowLine(path string, line int, before, after string) (shift int, changed bool, err error) {
	patch, err := r.Output("diff", "--no-color", "-U0", before, after, "--", path)
	if err != nil {
		return 0, false, err
	}
	for _, h := range ParseHunks(patch) {
		switch {
		case h.oldCount == 0 && h.OldStart >= line, h.oldCount > 0 && h.OldStart > line: // below the line
		case h.oldCount > 0 && line < h.OldStart+h.oldCount: // contains the line
			return 0, true, nil
		default:
			shift += h.newCount - h.oldCount
		}
	}
	return shift, false, nil
}

// ChangedFiles returns the files that differ between two commits, without patches. It does not detect renames. An empty
// from means an empty tree.
func (r *Repository) ChangedFiles(from, to string) []FileChange {
	raw, err := r.fixedOutput("diff", "--no-renames", "--raw", "-z", "--no-abbrev", cmp.Or(from, emptyTree), to)
	if err != nil {
		return nil
	}
	return parseRaw(raw)
}

// atoi returns the number in a string, or missing if it is not a number.
func atoi(s string, missing int) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return missing
	}
	return n
}
