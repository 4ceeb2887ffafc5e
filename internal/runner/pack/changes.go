package pack

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha1" //nolint:gosec // git's own object ids
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Entries of the git part.
const (
	gitIndex   = "index"   // differences between the index and HEAD, as input of `update-index --index-info`
	gitDeleted = "deleted" // paths that are missing in the checkout
	gitState   = "state"   // folder with the state of an unfinished git operation
)

// changes are the differences of index and checkout to HEAD.
type changes struct {
	index   []byte
	blobs   []string // blobs that the index needs
	files   []item
	deleted []string
}

// noID is the null object id in git's listings.
const noID = "0000000000000000000000000000000000000000"

// raw is one path of git's raw diff output.
type raw struct {
	oldMode, newMode, oldID, newID, status, path string
}

// findChanges compares HEAD, index and checkout. Files are compared by the size and times that git recorded; if that is
// inconclusive, their content is compared byte for byte, without filters.
func (p *packer) findChanges(ctx context.Context) (changes, error) {
	var c changes
	wanted := map[string]*raw{} // paths to check; the value is the index entry if only the checkout differs
	untracked, err := p.list(ctx, "ls-files", "-z", "--others", "--exclude-standard")
	if err != nil {
		return c, fmt.Errorf("list untracked files: %w", err)
	}
	for _, name := range untracked {
		if dir, ok := strings.CutSuffix(name, "/"); ok {
			p.m.recordOmitted(dir, reasonRepo, 0)
			continue
		}
		wanted[name] = nil
	}
	dirty, err := p.diff(ctx, "diff-files")
	if err != nil {
		return c, fmt.Errorf("list changed files: %w", err)
	}
	toAdd := map[string]bool{}
	for _, d := range dirty {
		wanted[d.path] = &d
		toAdd[d.path] = d.status == "A"
	}
	if err := p.addFlagged(ctx, wanted); err != nil {
		return c, err
	}
	if err := p.addStaged(ctx, &c, wanted, toAdd); err != nil {
		return c, err
	}
	for name, at := range wanted {
		if err := ctx.Err(); err != nil {
			return c, err
		}
		p.classify(ctx, &c, name, at)
	}
	slices.SortFunc(c.files, func(a, b item) int { return strings.Compare(a.path, b.path) })
	slices.Sort(c.deleted)
	return c, nil
}

// classify decides how one path is packed.
func (p *packer) classify(ctx context.Context, c *changes, name string, at *raw) {
	if at != nil && at.newMode == "160000" || at != nil && at.oldMode == "160000" {
		return // a submodule
	}
	it, reason := statItem(p.dir, name, name, false)
	switch {
	case p.throughLink(p.dir, path.Dir(name)), reason == reasonGone, reason == "" && it.entry.kind == tar.TypeDir:
		c.deleted = append(c.deleted, name)
	case reason != "" || hasDotGit(name):
		p.m.recordOmitted(name, orReason(reason), it.entry.size)
		c.deleted = append(c.deleted, name)
	case at != nil && p.unchanged(ctx, it, at):
	default:
		c.files = append(c.files, it)
	}
}

func orReason(reason string) string {
	if reason == "" {
		return "it lies in a git folder"
	}
	return reason
}

// unchanged reports whether a touched file has the content of the index, or the content to which the pointer in the
// index refers.
func (p *packer) unchanged(ctx context.Context, it item, at *raw) bool {
	if at.status != "M" || at.oldMode != at.newMode || len(at.oldID) != 2*sha1.Size || it.entry.kind != tar.TypeReg ||
		it.entry.size > 64<<20 {
		return false
	}
	f, err := openRegular(p.dir, it.path)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	h := sha1.New() //nolint:gosec // as above
	large := sha256.New()
	fmt.Fprintf(h, "blob %d\x00", it.entry.size)
	n, err := io.Copy(io.MultiWriter(h, large), f)
	if err != nil || n != it.entry.size {
		return false
	}
	return hex.EncodeToString(h.Sum(nil)) == at.oldID || p.pointsTo(ctx, at.oldID, hex.EncodeToString(large.Sum(nil)))
}

// addFlagged adds existing paths that git was told to ignore in comparisons (assume-unchanged, skip-worktree).
func (p *packer) addFlagged(ctx context.Context, wanted map[string]*raw) error {
	tagged, err := p.list(ctx, "ls-files", "-z", "-v")
	if err != nil {
		return fmt.Errorf("list flagged files: %w", err)
	}
	for _, line := range tagged {
		tag, name, ok := strings.Cut(line, " ")
		if !ok || tag != "S" && strings.ToLower(tag) != tag {
			continue
		}
		if _, err := p.dir.Lstat(name); err == nil && wanted[name] == nil {
			wanted[name] = nil
		}
	}
	return nil
}

// addStaged records the differences between the index and HEAD, and adds their paths to wanted, because a restored
// index contains no information about the checkout. Paths marked as intended to be added become untracked.
func (p *packer) addStaged(ctx context.Context, c *changes, wanted map[string]*raw, toAdd map[string]bool) error {
	list, err := p.diff(ctx, "diff-index", "--cached", "HEAD")
	if err != nil {
		return fmt.Errorf("compare the index with HEAD: %w", err)
	}
	var b bytes.Buffer
	blob := func(mode, id string) {
		if mode != "160000" {
			c.blobs = append(c.blobs, id)
		}
	}
	for _, d := range list {
		wanted[d.path] = nil
		switch {
		case d.status == "U":
			fmt.Fprintf(&b, "0 %s\t%s\x00", noID, d.path)
		case toAdd[d.path]:
		case d.status == "D":
			fmt.Fprintf(&b, "0 %s\t%s\x00", noID, d.path)
		default:
			fmt.Fprintf(&b, "%s %s 0\t%s\x00", d.newMode, d.newID, d.path)
			blob(d.newMode, d.newID)
		}
	}
	unmerged, err := p.list(ctx, "ls-files", "-z", "--unmerged")
	if err != nil {
		return fmt.Errorf("list conflicts: %w", err)
	}
	for _, line := range unmerged { // "mode id stage TAB path", which is also the input format
		head, name, ok := strings.Cut(line, "\t")
		fields := strings.Fields(head)
		if !ok || len(fields) != 3 {
			return fmt.Errorf("list conflicts: unexpected %q", truncate(line, 200))
		}
		wanted[name] = nil
		b.WriteString(line + "\x00")
		blob(fields[0], fields[1])
	}
	c.index = b.Bytes()
	return nil
}

// list runs a git command that prints NUL-terminated names.
func (p *packer) list(ctx context.Context, args ...string) ([]string, error) {
	out, err := p.git.Run(ctx, nil, args...)
	if err != nil || len(out) == 0 {
		return nil, err
	}
	names := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	if len(names) > 4*maxEntries {
		return nil, fmt.Errorf("%w: git lists %d files", ErrTooLarge, len(names))
	}
	return names, nil
}

// diff runs a git command that prints raw differences: ":mode mode id id status NUL path NUL".
func (p *packer) diff(ctx context.Context, command string, args ...string) ([]raw, error) {
	all := append([]string{command, "--raw", "-z", "--no-renames", "--no-abbrev", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all"}, args...)
	fields, err := p.list(ctx, all...)
	if err != nil {
		return nil, err
	}
	var out []raw
	for i := 0; i+1 < len(fields); i += 2 {
		f := strings.Fields(strings.TrimPrefix(fields[i], ":"))
		if len(f) != 5 {
			return nil, fmt.Errorf("%s printed %q", command, truncate(fields[i], 200))
		}
		out = append(out, raw{oldMode: f[0], newMode: f[1], oldID: f[2], newID: f[3], status: f[4], path: fields[i+1]})
	}
	return out, nil
}

// removeBlocking removes pipes, sockets and devices with the names of git's rule files from the checkout, because git
// would block reading them. It fails if git's own folder contains such a file or a link to one.
func (p *packer) removeBlocking(ctx context.Context) error {
	rules := []string{".gitignore", ".gitattributes", ".gitmodules", ".mailmap"}
	return filepath.WalkDir(p.spec.Dir, func(full string, d fs.DirEntry, err error) error {
		if cerr := ctx.Err(); cerr != nil {
			return cerr
		}
		if err != nil || d.Type().IsRegular() || d.IsDir() {
			return nil // git reports unreadable entries
		}
		name, err := filepath.Rel(p.spec.Dir, full)
		if err != nil {
			return err
		}
		if strings.HasPrefix(name, ".git/") {
			return checkNotSpecial(full, name)
		}
		if d.Type()&fs.ModeSymlink != 0 {
			return nil // git does not follow links to its rule files
		}
		if slices.Contains(rules, path.Base(name)) {
			p.m.recordOmitted(name, reasonSpecial, 0)
			return p.dir.Remove(name)
		}
		return nil
	})
}

// checkNotSpecial refuses files on which git would block. Sockets are allowed: opening them fails.
func checkNotSpecial(full, name string) error {
	info, err := os.Stat(full)
	if err != nil || info.Mode()&(fs.ModeNamedPipe|fs.ModeDevice|fs.ModeCharDevice|fs.ModeIrregular) == 0 {
		return nil
	}
	return fmt.Errorf("%s is neither a file nor a folder: %w", truncate(name, 200), errTampered)
}

// errTampered refuses a repository that could make git block.
var errTampered = errors.New("the checkout's repository was tampered with")
