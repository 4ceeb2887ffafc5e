package changeset

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Validate checks the changeset's form: ids, the chain of parents, messages, modes, paths, and that the blobs are
// exactly those that the changes refer to and match their ids. It cannot check trees, or the state of a path at the
// base; internal/pushgate decides which modes may be published. The error describes the first problem and its place,
// and matches [ErrMalformed].
func (c *Changeset) Validate(limits Limits) error {
	if err := c.validate(limits); err != nil {
		return malformed(fmt.Errorf("validate changeset: %w", err))
	}
	return nil
}

func (c *Changeset) validate(limits Limits) error {
	if !IsID(c.Base) {
		return fmt.Errorf("base %q is not a commit id", quoteLimited(c.Base))
	}
	switch {
	case len(c.Commits) > limits.Commits:
		return fmt.Errorf("%w: %d commits, at most %d", ErrTooLarge, len(c.Commits), limits.Commits)
	case len(c.Notes) > limits.Notes:
		return fmt.Errorf("%w: %d notes, at most %d", ErrTooLarge, len(c.Notes), limits.Notes)
	}
	for _, note := range c.Notes {
		if len(note) > limits.Message || !utf8.ValidString(note) {
			return errors.New("a note is too long or not UTF-8")
		}
	}
	if err := c.validateCommits(limits); err != nil {
		return err
	}
	return c.validateBlobs(limits)
}

func (c *Changeset) validateCommits(limits Limits) error {
	previous, changes := c.Base, 0
	seen := map[string]bool{c.Base: true}
	for i, commit := range c.Commits {
		changes += len(commit.Changes)
		if changes > limits.Changes {
			return fmt.Errorf("%w: more than %d changes", ErrTooLarge, limits.Changes)
		}
		if err := commit.validate(previous, seen, limits); err != nil {
			return fmt.Errorf("commit %d (%s): %w", i+1, quoteLimited(commit.ID), err)
		}
		seen[commit.ID] = true
		previous = commit.ID
	}
	return nil
}

func (c *Commit) validate(previous string, seen map[string]bool, limits Limits) error {
	switch {
	case !IsID(c.ID):
		return errors.New("its id is not a commit id")
	case seen[c.ID]:
		return errors.New("it occurs twice")
	case !IsID(c.Tree):
		return fmt.Errorf("tree %q is not an object id", quoteLimited(c.Tree))
	case len(c.Parents) < 1 || len(c.Parents) > 2:
		return fmt.Errorf("it has %d parents, not one or two", len(c.Parents))
	case c.Parents[0] != previous:
		return fmt.Errorf("its first parent is %s, not %s", quoteLimited(c.Parents[0]), previous)
	case len(c.Parents) == 2 && (!IsID(c.Parents[1]) || seen[c.Parents[1]] || c.Parents[1] == c.ID):
		return fmt.Errorf("its second parent %q is not a commit outside the chain", quoteLimited(c.Parents[1]))
	case len(c.Message) > limits.Message:
		return fmt.Errorf("%w: message of %d bytes, at most %d", ErrTooLarge, len(c.Message), limits.Message)
	case !utf8.ValidString(c.Message) || strings.ContainsRune(c.Message, 0):
		return errors.New("its message is not UTF-8 or contains a NUL")
	}
	return validateChanges(c.Changes, limits)
}

func validateChanges(changes []Change, limits Limits) error {
	present := make(map[string]bool, len(changes))
	for i, change := range changes {
		if err := change.validate(limits); err != nil {
			return fmt.Errorf("path %q: %w", quoteLimited(change.Path), err)
		}
		if i > 0 && changes[i-1].Path >= change.Path {
			return fmt.Errorf("path %q: not sorted, or twice", quoteLimited(change.Path))
		}
		present[change.Path] = !change.Deleted()
	}
	for _, change := range changes {
		if change.Deleted() {
			continue
		}
		for dir := parent(change.Path); dir != ""; dir = parent(dir) {
			if present[dir] {
				return fmt.Errorf("path %q: %q cannot be a file and a directory", quoteLimited(change.Path), quoteLimited(dir))
			}
		}
	}
	return nil
}

func parent(path string) string {
	i := strings.LastIndexByte(path, '/')
	if i < 0 {
		return ""
	}
	return path[:i]
}

func (c Change) validate(limits Limits) error {
	if err := CheckPath(c.Path, limits.Path); err != nil {
		return err
	}
	if c.OldMode != "" && !c.OldMode.known() {
		return fmt.Errorf("unknown old mode %q", quoteLimited(string(c.OldMode)))
	}
	if c.Deleted() {
		switch {
		case c.Blob != "":
			return errors.New("deleted, but with content")
		case c.OldMode == "":
			return errors.New("neither an old nor a new mode")
		}
		return nil
	}
	switch {
	case !c.Mode.octal():
		return fmt.Errorf("unknown mode %q", quoteLimited(string(c.Mode)))
	case !IsID(c.Blob):
		return fmt.Errorf("%q is not an object id", quoteLimited(c.Blob))
	}
	return nil
}

// octal reports whether the mode has git's form: six octal digits.
func (m Mode) octal() bool {
	return len(m) == 6 && strings.Trim(string(m), "01234567") == ""
}

func (m Mode) known() bool {
	switch m {
	case ModeFile, ModeExecutable, ModeSymlink, ModeSubmodule:
		return true
	default:
		return false
	}
}

// CheckPath returns an error unless the path is relative, clean, valid UTF-8 without control characters, and leads
// neither out of the tree nor into a .git directory under any spelling that a file system accepts for it. limit is the
// maximum length in bytes.
func CheckPath(path string, limit int) error {
	switch {
	case path == "":
		return errors.New("empty path")
	case len(path) > limit:
		return fmt.Errorf("%w: path of %d bytes, at most %d", ErrTooLarge, len(path), limit)
	case !utf8.ValidString(path):
		return errors.New("not UTF-8")
	case strings.ContainsFunc(path, unicode.IsControl):
		return errors.New("contains a control character")
	}
	for part := range strings.SplitSeq(path, "/") {
		switch {
		case part == "":
			return errors.New("absolute, or with an empty part")
		case part == "." || part == "..":
			return errors.New("contains a . or .. part")
		case isDotGit(part):
			return errors.New("leads into a .git directory")
		}
	}
	return nil
}

// isDotGit applies git's own protection: case, trailing dots and spaces, NTFS short names and streams, and characters
// that HFS+ ignores. A backslash is a separator on Windows.
func isDotGit(part string) bool {
	if strings.ContainsRune(part, '\\') {
		for piece := range strings.SplitSeq(part, `\`) {
			if isDotGit(piece) {
				return true
			}
		}
		return false
	}
	part = strings.Map(func(r rune) rune {
		if ignoredByHFS(r) {
			return -1
		}
		return r
	}, part)
	part, _, _ = strings.Cut(part, ":")
	part = strings.ToLower(strings.TrimRight(part, ". "))
	return part == ".git" || part == "git~1"
}

func ignoredByHFS(r rune) bool {
	return (r >= 0x200c && r <= 0x200f) || (r >= 0x202a && r <= 0x202e) || (r >= 0x206a && r <= 0x206f) || r == 0xfeff
}

func (c *Changeset) validateBlobs(limits Limits) error {
	used := make(map[string]bool)
	for _, commit := range c.Commits {
		for _, change := range commit.Changes {
			if change.Deleted() || change.Mode == ModeSubmodule || used[change.Blob] {
				continue
			}
			used[change.Blob] = true
			if _, ok := c.Blobs[change.Blob]; !ok {
				return fmt.Errorf("path %q: content %s is missing", quoteLimited(change.Path), change.Blob)
			}
		}
	}
	var total int64
	for id, content := range c.Blobs {
		if !used[id] {
			return fmt.Errorf("content %s belongs to no path", quoteLimited(id))
		}
		if total += int64(len(content)); total > limits.Blobs {
			return fmt.Errorf("%w: more than %d bytes of content", ErrTooLarge, limits.Blobs)
		}
		if BlobID(content) != id {
			return fmt.Errorf("content %s does not match its id", id)
		}
	}
	return c.validateLFS(limits, total)
}

// quoteLimited returns untrusted text for an error message. It replaces a text that is too long by its size instead of
// cutting it, because the redactor could not recognize the beginning of a secret.
func quoteLimited(text string) string {
	const most = 200
	if len(text) <= most {
		return text
	}
	return fmt.Sprintf("a text of %d bytes", len(text))
}
