package shellrules

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// FileRefusal is why a file may not be changed by a tool. Its text is for the model that wanted to.
type FileRefusal struct {
	// Path is the file, as it was asked for; Write are the folders below which files may be changed.
	Path  string
	Write []string
}

func (r *FileRefusal) Error() string {
	return fmt.Sprintf("The rules of this run refuse this call: %s is not below %s, where tools may change files.", cut(r.Path), strings.Join(r.Write, " or "))
}

// JudgeFile says why a tool that works in dir may not change a file, nil if it may. Links are followed, also those that
// lead to nothing yet.
func (r Rules) JudgeFile(dir, path string) *FileRefusal {
	if r.Write == nil {
		return nil
	}
	full := path
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		home, _ := os.UserHomeDir() // without one the path is relative, and outside of every folder
		full = filepath.Join(home, rest)
	} else if !filepath.IsAbs(path) {
		full = filepath.Join(dir, path)
	}
	full, err := filepath.Abs(full) // of a program that does not say where it is, the hook is in the same place
	if err != nil {
		return &FileRefusal{Path: path, Write: r.Write}
	}
	full = resolve(full, maxLinks)
	if slices.ContainsFunc(r.Write, func(folder string) bool { return below(full, resolve(filepath.Clean(folder), maxLinks)) }) {
		return nil
	}
	return &FileRefusal{Path: path, Write: r.Write}
}

// maxLinks bounds how many links that lead to nothing are followed.
const maxLinks = 40

// resolve follows the links of a path, as far as there is something.
func resolve(path string, left int) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	parent := filepath.Dir(path)
	if parent == path {
		return path
	}
	if target, err := os.Readlink(path); err == nil && left > 0 {
		if !filepath.IsAbs(target) {
			target = filepath.Join(resolve(parent, left-1), target)
		}
		return resolve(filepath.Clean(target), left-1)
	}
	return filepath.Join(resolve(parent, left), filepath.Base(path))
}

// below reports whether a path is in a folder, or is it.
func below(path, folder string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

// fileTools are programs' tools that change files. Gemini CLI's keep to the checkout by themselves.
func fileTools() []string {
	return []string{"Edit", "MultiEdit", "NotebookEdit", "Write", "apply_patch"}
}

// paths are the files that a call would change, as far as that can be seen.
func (a asked) paths() []string {
	var list []string
	for line := range strings.Lines(a.Input.Command) { // a patch, as Codex has it
		for _, mark := range []string{"*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "} {
			if path, ok := strings.CutPrefix(line, mark); ok {
				list = append(list, strings.TrimSpace(path))
			}
		}
	}
	for _, path := range []string{a.Input.File, a.Input.Notebook} {
		if path != "" {
			list = append(list, path)
		}
	}
	return list
}

// judge says why the call may not be made, nil if it may or if nothing is known of it; known is whether something is, so
// that leave can be given.
func (r Rules) judge(a asked) (why error, known bool) {
	switch {
	case a.Tool == geminiShell || a.Tool == "Bash" && strings.TrimSpace(a.Input.Command) != "":
		if why := r.Judge(a.Input.Command); why != nil {
			return why, true
		}
		return nil, true
	case slices.Contains(fileTools(), a.Tool):
		paths := a.paths()
		for _, path := range paths {
			if why := r.JudgeFile(a.Dir, path); why != nil {
				return why, true
			}
		}
		return nil, r.Write != nil && len(paths) > 0
	}
	return nil, false
}
