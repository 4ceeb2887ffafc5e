package work

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/internal/durable"
)

// LFSConfig returns the git configuration by which a checkout handles large files without git-lfs: the runner is its
// filter, and handles `git lfs` if that program is not installed. Both store objects in the same place. url is the
// repository's fetch URL.
func LFSConfig(runner, url string) map[string]string {
	run := "'" + strings.ReplaceAll(runner, "'", `'\''`) + "' lfs "
	return map[string]string{
		"filter.lfs.clean": run + "clean", "filter.lfs.smudge": run + "smudge", "filter.lfs.required": "true",
		"alias.lfs": "!" + strings.TrimSuffix(run, " "), "lfs.url": url + lfsAPI,
	}
}

// lfsAPI is the path of a repository's LFS API.
const lfsAPI = ".git/info/lfs"

// LFSClean is the filter for content that goes into a commit: it stores a large file's content in the repository that
// contains dir, and writes the pointer to it. A pointer stays unchanged.
func LFSClean(ctx context.Context, dir string, in io.Reader, out io.Writer) error {
	begin, rest, err := pointerOrMore(in)
	if err != nil {
		return fmt.Errorf("read a large file: %w", err)
	}
	if p, _ := changeset.ParsePointer(begin); rest == nil && (p.OID != "" || len(begin) == 0) {
		_, err := out.Write(begin)
		return err
	}
	content := io.Reader(bytes.NewReader(begin))
	if rest != nil {
		content = io.MultiReader(content, rest)
	}
	at, err := openRepo(dir).lfsDir(ctx)
	if err != nil {
		return err
	}
	p, err := keepLarge(at, content, nil)
	if err != nil {
		return fmt.Errorf("keep a large file: %w", err)
	}
	_, err = io.WriteString(out, p.String())
	return err
}

// LFSSmudge is the filter for content that comes into the checkout: it writes the content that a pointer refers to, if
// it was pulled or created here. Otherwise the pointer stays, until LFSPull replaces it.
func LFSSmudge(ctx context.Context, dir string, in io.Reader, out io.Writer) error {
	begin, rest, err := pointerOrMore(in)
	if err != nil {
		return fmt.Errorf("read a pointer: %w", err)
	}
	if p, _ := changeset.ParsePointer(begin); rest == nil && p.OID != "" {
		at, err := openRepo(dir).lfsDir(ctx)
		if err != nil {
			return err
		}
		if f, err := openLarge(at, p); err == nil {
			defer func() { _ = f.Close() }()
			_, err = io.Copy(out, f)
			return err
		}
	}
	if _, err := out.Write(begin); err != nil || rest == nil {
		return err
	}
	_, err = io.Copy(out, rest)
	return err
}

// borrowLarge lets a repository check out the large files that another one stores in from, if any. The filter is this
// program, whatever the other repository's configuration says.
func (r *repo) borrowLarge(ctx context.Context, from string) error {
	if info, err := os.Stat(from); err != nil || !info.IsDir() {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	if err := os.Symlink(from, filepath.Join(r.dir, ".git", "lfs")); err != nil {
		return fmt.Errorf("borrow large files: %w", err)
	}
	for key, value := range LFSConfig(self, "") {
		if key == "lfs.url" {
			continue // nothing is fetched here
		}
		if _, err := r.run(ctx, "config", "--local", key, value); err != nil {
			return fmt.Errorf("borrow large files: %w", err)
		}
	}
	return nil
}

// pointerOrMore reads up to the maximum size of a pointer; rest is the remaining input, nil if there is none.
func pointerOrMore(in io.Reader) (begin []byte, rest io.Reader, err error) {
	begin = make([]byte, changeset.MaxPointer)
	n, err := io.ReadFull(in, begin)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return begin[:n], nil, nil
	}
	return begin, in, err
}

// errWrongObject means that content does not match its pointer.
var errWrongObject = errors.New("the content does not match its pointer")

// keepLarge stores content as an object, durably and completely or not at all, if it matches want; nil accepts any.
func keepLarge(dir string, content io.Reader, want *changeset.Pointer) (p changeset.Pointer, err error) {
	tmp := filepath.Join(dir, "tmp")
	if err := durable.MkdirAll(tmp, 0o755); err != nil {
		return p, err
	}
	f, err := os.CreateTemp(tmp, "object-")
	if err != nil {
		return p, err
	}
	defer func() { _ = os.Remove(f.Name()) }() // it no longer exists if it was stored
	h := sha256.New()
	p.Size, err = io.Copy(io.MultiWriter(f, h), content)
	if err != nil {
		return p, errors.Join(err, f.Close())
	}
	p.OID = hex.EncodeToString(h.Sum(nil))
	if want != nil && *want != p {
		return p, errors.Join(errWrongObject, f.Close())
	}
	file := lfsFile(dir, p.OID)
	if err := durable.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return p, errors.Join(err, f.Close())
	}
	return p, durable.Place(f, file)
}
