package shellrules

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// FileRefusal explains why a tool may not change a file. Its text is for the model that made the call.
type FileRefusal struct {
	// Path is the file as requested; Write lists the folders in which files may be changed.
	Path  string
	Write []string
}

func (r *FileRefusal) Error() string {
	return fmt.Sprintf("The rules of this run refuse this call: %s is not below %s, where tools may change files.", truncateCommand(r.Path), strings.Join(r.Write, " or "))
}

// JudgeFile returns why a tool that works in dir may not change a file, or nil. It follows links, including dangling
// ones.
func (r Rules) JudgeFile(dir, path string) *FileRefusal {
	if r.Write == nil {
		return nil
	}
	full := path
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		home, _ := os.UserHomeDir() // if the home is unknown, the path stays relative and lies outside every folder
		full = filepath.Join(home, rest)
	} else if !filepath.IsAbs(path) {
		full = filepath.Join(dir, path)
	}
	full, err := filepath.Abs(full) // without a cwd in the call, the hook's own working directory is the tool's
	if err != nil {
		return &FileRefusal{Path: path, Write: r.Write}
	}
	full = resolveLinks(full, maxLinks)
	if slices.ContainsFunc(r.Write, func(folder string) bool { return isWithin(full, resolveLinks(filepath.Clean(folder), maxLinks)) }) {
		return nil
	}
	return &FileRefusal{Path: path, Write: r.Write}
}

// maxLinks bounds the dangling links that are followed.
const maxLinks = 40

// resolveLinks follows the links of a path as far as it exists.
func resolveLinks(path string, budget int) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	parent := filepath.Dir(path)
	if parent == path {
		return path
	}
	if target, err := os.Readlink(path); err == nil && budget > 0 {
		if !filepath.IsAbs(target) {
			target = filepath.Join(resolveLinks(parent, budget-1), target)
		}
		return resolveLinks(filepath.Clean(target), budget-1)
	}
	return filepath.Join(resolveLinks(parent, budget), filepath.Base(path))
}

// isWithin reports whether a path is the folder or lies below it.
func isWithin(path, folder string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

// fileTools returns the tools of agent programs that change files. Gemini CLI's are missing because they are limited to
// the checkout anyway.
func fileTools() []string {
	return []string{"Edit", "MultiEdit", "NotebookEdit", "Write", "apply_patch"}
}

// changedPaths returns the files that a call would change, as far as they can be determined.
func (a hookCall) changedPaths() []string {
	var list []string
	for line := range strings.Lines(a.Input.Command) { // a patch in Codex's form
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

// judgeCall returns why the call may not be made, or nil. known reports whether any rule covers the call, so that it
// can be allowed explicitly.
func (r Rules) judgeCall(a hookCall) (why error, known bool) {
	switch {
	case a.Tool == geminiShell || a.Tool == "Bash" && strings.TrimSpace(a.Input.Command) != "":
		if why := r.Judge(a.Input.Command); why != nil {
			return why, true
		}
		return nil, true
	case slices.Contains(fileTools(), a.Tool):
		paths := a.changedPaths()
		for _, path := range paths {
			if why := r.JudgeFile(a.Dir, path); why != nil {
				return why, true
			}
		}
		return nil, r.Write != nil && len(paths) > 0
	}
	return nil, false
}
