package pushgate

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/errand-bot/errand/internal/changeset"
)

// Limits of common file systems, in bytes.
const (
	maxPathBytes = 1024
	maxNameBytes = 255
)

// checkPaths refuses paths that cannot be checked out on every system, or that mean something else there. Deleting such
// a path is allowed as long as it is a valid path.
func checkPaths(s *subject) []Refusal {
	var refusals []Refusal
	refuse := func(path, detail, remedy string) {
		refusals = append(refusals, Refusal{Rule: RulePaths, Path: path, Detail: detail, Remedy: remedy})
	}
	s.eachChange(func(_ checkedCommit, change changeset.Change) {
		if detail := pathProblem(change.Path); detail != "" {
			refuse(change.Path, detail, "use a plain path inside the repository")
			return
		}
		if change.Deleted() {
			return
		}
		detail := nameProblem(change.Path)
		if detail == "" && !s.inBase(change.Path) {
			detail = shortNameProblem(change.Path)
		}
		if detail != "" {
			refuse(change.Path, detail, "choose a name that every system can hold")
		}
	})
	for _, collision := range s.pathCollisions() {
		refuse(collision[0], fmt.Sprintf("it collides with `%s`", collision[1]), "give one of them another name")
	}
	return refusals
}

// pathProblem returns why a path may never be published, or "".
func pathProblem(p string) string {
	switch {
	case p == "":
		return "the path is empty"
	case !utf8.ValidString(p):
		return "the path is not valid UTF-8"
	case strings.HasPrefix(p, "/"):
		return "the path is absolute"
	case path.Clean(p) != p || p == "." || p == ".." || strings.HasPrefix(p, "../"):
		return "the path has empty, `.` or `..` parts"
	case strings.ContainsFunc(p, func(r rune) bool { return unicode.IsControl(r) || invisible(r) }):
		return "the path has control or invisible characters"
	}
	if isGitDir(p) {
		return "the path reaches into git's own directory"
	}
	return ""
}

// nameProblem returns why some system cannot store a new path, or "".
func nameProblem(p string) string {
	if len(p) > maxPathBytes {
		return fmt.Sprintf("the path has %d bytes, and at most %d are portable", len(p), maxPathBytes)
	}
	for name := range strings.SplitSeq(p, "/") {
		switch {
		case len(name) > maxNameBytes:
			return fmt.Sprintf("a part of the path has %d bytes, and at most %d are portable", len(name), maxNameBytes)
		case strings.ContainsAny(name, `\:*?"<>|`):
			return fmt.Sprintf("the name `%s` has characters that Windows does not allow", name)
		case strings.HasSuffix(name, ".") || strings.HasSuffix(name, " "):
			return fmt.Sprintf("the name `%s` ends in a dot or a space", name)
		case isWindowsDevice(name):
			return fmt.Sprintf("the name `%s` is a device on Windows", name)
		}
	}
	return ""
}

// shortNameProblem returns why Windows may resolve a part of a new path to another file, or "".
func shortNameProblem(p string) string {
	for name := range strings.SplitSeq(p, "/") {
		if isShortName(name) {
			return fmt.Sprintf("the name `%s` has the form of a short name, which may stand for another file on Windows", name)
		}
	}
	return ""
}

// inBase reports whether the base has a file at the path.
func (s *subject) inBase(path string) bool {
	_, ok := s.policy.Base[path]
	return ok
}

func isWindowsDevice(name string) bool {
	stem, _, _ := strings.Cut(strings.ToLower(name), ".")
	switch strings.TrimRight(stem, " ") {
	case "con", "prn", "aux", "nul", "conin$", "conout$":
		return true
	}
	if len(stem) != 4 || stem[3] < '1' || stem[3] > '9' {
		return false
	}
	return strings.HasPrefix(stem, "com") || strings.HasPrefix(stem, "lpt")
}

// pathCollisions returns pairs of paths that collide: new paths (or their directories) with others that differ only in
// case or Unicode form, new paths with a file where they need a directory, and new files with a directory that still
// exists.
func (s *subject) pathCollisions() [][2]string {
	old := map[string]bool{}
	for p := range s.policy.Base {
		withParents(p, func(name string) { old[name] = true })
	}
	spellings := map[string]string{} // folded → the smallest spelling, with the base's before new ones
	learn := func(name string) {
		known, ok := spellings[foldName(name)]
		better := old[name] && !old[known] || old[name] == old[known] && name < known
		if !ok || better {
			spellings[foldName(name)] = name
		}
	}
	for p := range s.final {
		withParents(p, learn)
	}
	below := map[string]string{} // directory → a path in it
	for _, p := range slices.Sorted(maps.Keys(s.final)) {
		withParents(path.Dir(p), func(dir string) { below[dir] = p })
	}
	var pairs [][2]string
	for _, p := range s.touched {
		if other, ok := below[p]; ok { // otherwise the directory's content would vanish without a recorded change
			pairs = append(pairs, [2]string{p, other})
		}
		withParents(p, func(name string) {
			if other := spellings[foldName(name)]; other != name && !old[name] {
				pairs = append(pairs, [2]string{p, other})
			}
			if _, file := s.final[name]; file && name != p {
				pairs = append(pairs, [2]string{p, name})
			}
		})
	}
	return pairs
}

// withParents calls visit for a path and each of its parent directories.
func withParents(p string, visit func(string)) {
	for p != "." && p != "/" && p != "" {
		visit(p)
		p = path.Dir(p)
	}
}

// invisible reports whether a character hides or reorders text. Joiners and variation selectors do not count, because
// emoji and several scripts need them.
func invisible(r rune) bool {
	switch {
	case r == 0x00AD, r == 0x061C, r == 0x180E, r == 0xFEFF:
		return true
	case r == 0x200B, r == 0x200E, r == 0x200F, r >= 0x2028 && r <= 0x202E, r >= 0x2060 && r <= 0x206F:
		return true
	case r >= 0xFFF9 && r <= 0xFFFB, r >= 0xE0000 && r <= 0xE007F:
		return true
	}
	return false
}
