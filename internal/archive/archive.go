// Package archive stores data on disk that is too large for the store: changesets before publishing, the work of
// interrupted runs, the work of suspended VMs, attachments of issues, and the transcripts of runs.
//
// Files are written completely, synced and renamed into place, so that a name in the store always refers to a complete
// file. Transcripts are appended to, one line at a time. Names derive from run ids and are validated. Agents have no
// access to these files.
//
// Start here: [Open].
package archive

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/internal/durable"
)

// Dir is the data folder of one deployment.
type Dir struct {
	path          string
	clean         func(string) string // redacts lines and events
	lines         func() func(string) string
	maxTranscript int64 // maximum size of one transcript in bytes; 0 means no limit
	deletions     *sync.RWMutex
}

// Open creates the folder, readable by its owner only. clean redacts a run's output before it is written; nil means no
// redaction.
func Open(path string, clean func(string) string) (*Dir, error) {
	for _, sub := range []string{"changesets", "transcripts", sleeps, attachments} {
		if err := durable.MkdirAll(filepath.Join(path, sub), 0o700); err != nil {
			return nil, fmt.Errorf("make the data folder: %w", err)
		}
	}
	if clean == nil {
		clean = func(s string) string { return s }
	}
	return &Dir{path: path, clean: clean, deletions: new(sync.RWMutex)}, nil
}

// HoldDeletions makes deletions of files wait until release is called, so that a backup finds every file to which its copy of the
// store refers.
func (d *Dir) HoldDeletions() (release func()) {
	d.deletions.Lock()
	return d.deletions.Unlock
}

// remove deletes a file to which the store may have referred.
func (d *Dir) remove(path string) error {
	d.deletions.RLock()
	defer d.deletions.RUnlock()
	return os.Remove(path)
}

var name = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,200}$`)

// file returns the path of a file, or an error for an invalid name.
func (d *Dir) file(sub, base, ext string) (string, error) {
	if !name.MatchString(base) {
		return "", fmt.Errorf("archive name %q: letters, digits, dots, dashes and underscores only", base)
	}
	return filepath.Join(d.path, sub, base+ext), nil
}

// SaveChangeset stores a changeset and returns its name for LoadChangeset. The name contains the head, so that a
// rebased changeset of the same run does not replace the earlier one.
func (d *Dir) SaveChangeset(run string, cs *changeset.Changeset) (ref string, err error) {
	ref = run + "-" + cs.Head()[:min(12, len(cs.Head()))]
	path, err := d.file("changesets", ref, ".json.zst")
	if err != nil {
		return "", err
	}
	var buf bytes.Buffer
	z, err := zstd.NewWriter(&buf)
	if err != nil {
		return "", fmt.Errorf("compress changeset: %w", err)
	}
	if err := changeset.Encode(z, cs); err != nil {
		return "", fmt.Errorf("encode changeset: %w", err)
	}
	if err := z.Close(); err != nil {
		return "", fmt.Errorf("compress changeset: %w", err)
	}
	return ref, durable.WriteFile(path, buf.Bytes(), 0o600)
}

// LoadChangeset reads a stored changeset.
func (d *Dir) LoadChangeset(ref string) (*changeset.Changeset, error) {
	path, err := d.file("changesets", ref, ".json.zst")
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open changeset: %w", err)
	}
	defer func() { _ = f.Close() }()
	z, err := zstd.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("read changeset %s: %w", ref, err)
	}
	defer z.Close()
	cs, err := changeset.Decode(z, changeset.DefaultLimits())
	if err != nil {
		return nil, fmt.Errorf("read changeset %s: %w", ref, err)
	}
	return cs, nil
}

// SaveDiff stores the full diff of a stored changeset next to it.
func (d *Dir) SaveDiff(ref, diff string) error {
	path, err := d.file("changesets", ref, ".diff")
	if err != nil {
		return err
	}
	return durable.WriteFile(path, []byte(d.clean(diff)), 0o600)
}

// OpenDiff opens the result of SaveDiff; the error matches fs.ErrNotExist if it does not exist or was pruned.
func (d *Dir) OpenDiff(ref string) (*os.File, error) {
	path, err := d.file("changesets", ref, ".diff")
	if err != nil {
		return nil, err
	}
	return os.Open(path)
}

// DeleteTask removes every file of a task and returns their number. prefixes begin the names of its files, and of no others: "REPO-ISSUE-",
// and for work saved from a VM the VM's name. When it returns nil, the removal is durable. It may be repeated.
func (d *Dir) DeleteTask(prefixes ...string) (removed int, err error) {
	for _, sub := range []string{"changesets", "transcripts", sleeps, attachments} {
		entries, err := os.ReadDir(filepath.Join(d.path, sub))
		if err != nil {
			return removed, fmt.Errorf("list %s: %w", sub, err)
		}
		for _, e := range entries {
			if !slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(e.Name(), p) }) {
				continue
			}
			if err := d.remove(filepath.Join(d.path, sub, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return removed, fmt.Errorf("remove a file of a task: %w", err)
			}
			removed++
		}
		if err := durable.SyncDir(filepath.Join(d.path, sub)); err != nil {
			return removed, fmt.Errorf("remove the files of a task: %w", err)
		}
	}
	return removed, nil
}

// RemoveIncomplete removes the files that a dead process was writing. Call it before anything writes.
func (d *Dir) RemoveIncomplete() error {
	_, err := d.DeleteTask(durable.TempPrefix)
	return err
}

// Prune removes changesets and transcripts that were last written before the given times, and incomplete sleep archives
// and attachments that were last written before changesets.
func (d *Dir) Prune(changesets, transcripts time.Time) (removed int, err error) {
	for sub, before := range map[string]time.Time{"changesets": changesets, "transcripts": transcripts, sleeps: changesets, attachments: changesets} {
		entries, err := os.ReadDir(filepath.Join(d.path, sub))
		if err != nil {
			return removed, fmt.Errorf("list %s: %w", sub, err)
		}
		for _, e := range entries {
			info, err := e.Info()
			if err != nil || !info.ModTime().Before(before) ||
				(sub == sleeps || sub == attachments) && !strings.HasPrefix(e.Name(), durable.TempPrefix) {
				continue
			}
			if err := d.remove(filepath.Join(d.path, sub, e.Name())); err != nil {
				return removed, fmt.Errorf("remove an old file: %w", err)
			}
			removed++
		}
	}
	return removed, nil
}
