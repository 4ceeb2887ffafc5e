package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/errand-bot/errand/internal/durable"
)

// Store copies its file while it is in use. boltkv.DB implements it.
type Store interface {
	Backup(ctx context.Context, begun func() error, w io.Writer) error
}

// Source is a data folder that is in use.
type Source struct {
	Data  string
	Store Store
	// Hold makes deletions of files wait until release is called. Nil means that nothing deletes any.
	Hold func() (release func())
	Info Info // without Format and Schema
	// Schema reads the schema's version from the store.
	Schema func(ctx context.Context) (int, error)
	// Free returns the free space on the disk of a path: a backup that would fill the disk of the data folder is refused with ErrNoSpace,
	// or ends with it. Nil checks nothing; FreeSpace asks the operating system.
	Free func(path string) (uint64, error)
}

// A Copy is a consistent copy of a data folder. It takes little space on the disk: its files are those of the data
// folder, under a second name, except the store. It has to be closed.
type Copy struct {
	Info  Info
	dir   string
	files []file
	space func(more int64) error // checks the space on the disk of the data folder
}

// file is a file of a copy. Files to which errand appends may have grown since.
type file struct {
	name string // relative to the data folder, with slashes
	size int64
	at   time.Time
}

// Take copies a data folder. Whatever the copied store refers to is among the copied files: files are written before the store
// refers to them, and while the store's copy begins and the files get their second names, which takes milliseconds, none is deleted.
func Take(ctx context.Context, s Source) (_ *Copy, err error) {
	if err := s.hasRoom(); err != nil {
		return nil, fmt.Errorf("make a backup: %w", err)
	}
	dir, err := os.MkdirTemp(s.Data, tempPrefix+"*")
	if err != nil {
		return nil, fmt.Errorf("make a backup: %w", err)
	}
	c := &Copy{Info: s.Info, dir: dir, space: s.hasSpace}
	c.Info.Format = Format
	if c.Info.Schema, err = s.Schema(ctx); err == nil {
		err = c.fill(ctx, s)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make a backup: %w", err), c.Close())
	}
	return c, nil
}

func (c *Copy) fill(ctx context.Context, s Source) error {
	f, err := os.OpenFile(filepath.Join(c.dir, storeName), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	release := func() {}
	if s.Hold != nil {
		release = sync.OnceFunc(s.Hold())
	}
	defer release()
	err = s.Store.Backup(ctx, func() error {
		defer release()
		return c.link(ctx, s.Data, "")
	}, f)
	info, serr := f.Stat()
	if err = errors.Join(err, serr, f.Close()); err != nil {
		return err
	}
	c.files = slices.Insert(c.files, 0, file{name: storeName, size: info.Size(), at: info.ModTime()})
	return nil
}

// link gives the files below a folder of the data folder a second name in the copy. Files that vanish are left out: the store does
// not refer to them. A symbolic link is an error, since the backup would silently lack what it points to.
func (c *Copy) link(ctx context.Context, data, under string) error {
	entries, err := os.ReadDir(filepath.Join(data, under))
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := path.Join(under, e.Name())
		if under == "" && (name == storeName || isLeftOut(name)) || strings.HasPrefix(e.Name(), durable.TempPrefix) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		switch e.Type() {
		case fs.ModeDir:
			if err = os.Mkdir(filepath.Join(c.dir, name), 0o700); err == nil {
				err = c.link(ctx, data, name)
			}
		case 0:
			err = c.linkFile(data, name)
		case fs.ModeSymlink:
			err = fmt.Errorf("%s is a symbolic link; a backup has only what is in the data folder itself, so move its target there", filepath.Join(data, name))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (c *Copy) linkFile(data, name string) error {
	if err := checkName(name); err != nil {
		return fmt.Errorf("%w; errand wrote no such file: move it elsewhere", err)
	}
	if len(c.files) >= maxFiles {
		return fmt.Errorf("the data folder has more than %d files", maxFiles)
	}
	second := filepath.Join(c.dir, name)
	if err := os.Link(filepath.Join(data, name), second); err != nil {
		return err
	}
	info, err := os.Lstat(second)
	if err != nil {
		return err
	}
	c.files = append(c.files, file{name: name, size: info.Size(), at: info.ModTime()})
	return nil
}

// Close removes the copy.
func (c *Copy) Close() error { return os.RemoveAll(c.dir) }

// Clean removes the copies that a dead process left in a data folder. Only the process that has the store open may call it.
func Clean(data string) error {
	left, err := filepath.Glob(filepath.Join(escapeGlob(data), tempPrefix+"*"))
	if err != nil {
		return fmt.Errorf("look for unfinished backups: %w", err)
	}
	var errs []error
	for _, dir := range left {
		errs = append(errs, os.RemoveAll(dir))
	}
	return errors.Join(errs...)
}

// escapeGlob returns a pattern that matches only path.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}
