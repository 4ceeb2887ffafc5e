package agentloop

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"unicode/utf8"
)

// Limits of the editor.
const (
	maxFile   = 8 << 20   // bytes of a file to view or change
	viewLimit = 64 << 10  // bytes in one view
	dirLimit  = 500       // names in one view of a directory
	viewDepth = 2         // levels below the directory
	aroundIt  = 4         // lines shown around a change
	maxLine   = 2_000     // bytes of a line that a view shows
	hugeText  = 512 << 10 // bytes written by one call
)

// editor changes files of the workspace. It resolves every path below one open directory, so that no link leads out of
// it, whenever it was created.
type editor struct {
	root *os.Root
	dirs []string // the workspace's absolute paths
}

type editCall struct {
	Command    string `json:"command"`
	Path       string `json:"path"`
	ViewRange  []int  `json:"view_range"`
	FileText   string `json:"file_text"`
	OldStr     string `json:"old_str"`
	NewStr     string `json:"new_str"`
	InsertLine int    `json:"insert_line"`
	InsertText string `json:"insert_text"`
}

func openEditor(dirs ...string) (*editor, error) {
	root, err := os.OpenRoot(dirs[0])
	if err != nil {
		return nil, fmt.Errorf("open the workspace: %w", err)
	}
	return &editor{root, dirs}, nil
}

func (e *editor) close() {
	if e != nil {
		_ = e.root.Close()
	}
}

// relativePath returns a path relative to the workspace.
func (e *editor) relativePath(name string) (string, error) {
	if name == "" {
		return "", errors.New("the path is missing")
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(e.dirs[0], name)
	}
	for _, dir := range e.dirs {
		if rel, err := filepath.Rel(dir, filepath.Clean(name)); err == nil && filepath.IsLocal(rel) {
			return filepath.ToSlash(rel), nil
		}
	}
	return "", outsideError(name + " is not in the checkout; only files in the checkout can be viewed or changed")
}

// run executes one call and returns the result for the model. name is the call's path, as relativePath returned it.
// Errors are for the model; an outsideError is one of them.
func (e *editor) run(call editCall, name string) (string, error) {
	switch call.Command {
	case "view":
		return e.view(name, call.ViewRange)
	case "create":
		return e.create(name, call.FileText)
	case "str_replace":
		return e.replace(name, call.OldStr, call.NewStr)
	case "insert":
		return e.insert(name, call.InsertLine, call.InsertText)
	}
	return "", fmt.Errorf("the editor has no command %q: use view, create, str_replace or insert", call.Command)
}

// read returns the text of a file.
func (e *editor) read(name string) (string, error) {
	data, err := e.readBytes(name)
	if err != nil {
		return "", err
	}
	if !utf8.Valid(data) {
		return "", fmt.Errorf("%s is not a text file; use the shell", name)
	}
	return string(data), nil
}

// readBytes returns the content of a file.
func (e *editor) readBytes(name string) ([]byte, error) {
	f, err := e.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // otherwise a pipe would block
	if err != nil {
		return nil, withoutOp(err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, withoutOp(err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a file", name)
	case info.Size() > maxFile:
		return nil, fmt.Errorf("%s has %d bytes, which is too long for the editor; use the shell", name, info.Size())
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return nil, withoutOp(err)
	}
	return data, nil
}

// write replaces the text of a file and keeps its mode.
func (e *editor) write(name, text string) error {
	f, err := e.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NONBLOCK, 0o644)
	if err != nil {
		return withoutOp(err)
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Close()); err != nil {
		return withoutOp(err)
	}
	return nil
}

func (e *editor) create(name, text string) (string, error) {
	if len(text) > hugeText {
		return "", fmt.Errorf("the text has %d bytes; write it in pieces", len(text))
	}
	if info, err := e.root.Stat(name); err == nil && !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a file", name)
	}
	if dir := path.Dir(name); dir != "." {
		if err := e.root.MkdirAll(dir, 0o755); err != nil {
			return "", withoutOp(err)
		}
	}
	if err := e.write(name, text); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s was written: %d lines.", name, strings.Count(text, "\n")), nil
}

func (e *editor) replace(name, from, to string) (string, error) {
	text, err := e.read(name)
	if err != nil {
		return "", err
	}
	if from == "" {
		return "", errors.New("old_str is missing; use insert to add text, or create for a new file")
	}
	switch n := strings.Count(text, from); n {
	case 1:
	case 0:
		return "", fmt.Errorf("old_str does not occur in %s. It must match the file exactly, including whitespace and line ends", name)
	default:
		return "", fmt.Errorf("old_str occurs %d times in %s. Include more of the surrounding text so that it occurs once", n, name)
	}
	at := strings.Index(text, from)
	text = text[:at] + to + text[at+len(from):]
	if err := e.write(name, text); err != nil {
		return "", err
	}
	line := strings.Count(text[:at], "\n") + 1
	return "Replaced. The text is now:\n" + numbered(text, line-aroundIt, line+strings.Count(to, "\n")+aroundIt), nil
}

func (e *editor) insert(name string, after int, add string) (string, error) {
	text, err := e.read(name)
	if err != nil {
		return "", err
	}
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	if after < 0 || after > len(lines) {
		return "", fmt.Errorf("insert_line is %d, and %s has %d lines", after, name, len(lines))
	}
	if add != "" && !strings.HasSuffix(add, "\n") {
		add += "\n"
	}
	before := strings.Join(lines[:after], "")
	if before != "" && !strings.HasSuffix(before, "\n") {
		before += "\n"
	}
	text = before + add + strings.Join(lines[after:], "")
	if err := e.write(name, text); err != nil {
		return "", err
	}
	return "Inserted. The text is now:\n" + numbered(text, after+1-aroundIt, after+strings.Count(add, "\n")+aroundIt), nil
}

// outsideError means that a file is not in the checkout.
type outsideError string

func (e outsideError) Error() string { return string(e) }

// withoutOp removes the name of the failed system call from an error.
func withoutOp(err error) error {
	var pe *fs.PathError
	if !errors.As(err, &pe) {
		return err
	}
	if strings.Contains(pe.Err.Error(), "escapes") {
		return outsideError(pe.Path + " leads out of the checkout")
	}
	return fmt.Errorf("%s: %w", pe.Path, pe.Err)
}
