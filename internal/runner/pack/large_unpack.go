package pack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/errand-bot/errand/internal/changeset"
)

// large moves the large files to the directory of Git LFS. Their content has been verified.
func (u *unpacker) large(context.Context) error {
	for oid := range u.oids {
		if err := u.dir.place(path.Join(partLarge, oid), largePath(oid), true); err != nil {
			return err
		}
	}
	return nil
}

// contents replaces the pointers of restored large files in the checkout by their content. The content was in the
// checkout when it was packed, and git runs no filter here.
func (u *unpacker) contents(ctx context.Context) error {
	if len(u.oids) == 0 {
		return nil
	}
	listed, err := u.git.Run(ctx, nil, "ls-files", "--stage", "-z")
	if err != nil {
		return err
	}
	paths := map[string][]string{} // by object
	for line := range strings.SplitSeq(strings.TrimSuffix(string(listed), "\x00"), "\x00") {
		head, name, _ := strings.Cut(line, "\t")
		if fields := strings.Fields(head); len(fields) == 3 && strings.HasPrefix(fields[0], "100") && fields[2] == "0" {
			paths[fields[1]] = append(paths[fields[1]], name)
		}
	}
	pointers, err := readPointers(ctx, u.git, paths)
	if err != nil {
		return err
	}
	for id, ptr := range pointers {
		if !u.oids[ptr.OID] {
			continue
		}
		for _, name := range paths[id] {
			if err := u.dir.fill(name, ptr); err != nil {
				return fmt.Errorf("%s: %w", truncate(name, 300), err)
			}
		}
	}
	return nil
}

// fill replaces a pointer by the content of its large file. It leaves any other file unchanged.
func (a *area) fill(name string, ptr changeset.Pointer) error {
	for i, c := range name {
		if c != '/' {
			continue
		}
		if info, err := a.root.Lstat(name[:i]); err != nil || !info.IsDir() {
			return nil
		}
	}
	if info, err := a.root.Lstat(name); err != nil || !info.Mode().IsRegular() || info.Size() >= changeset.MaxPointer {
		return nil
	}
	file, err := a.root.OpenFile(name, os.O_RDWR|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, changeset.MaxPointer))
	if err != nil {
		return err
	}
	if there, _ := changeset.ParsePointer(text); there != ptr {
		return nil
	}
	content, err := a.root.Open(largePath(ptr.OID))
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }()
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	n, err := io.Copy(file, content)
	return errors.Join(err, file.Truncate(n), file.Close())
}
