package boltkv

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/errand-bot/errand/internal/durable"
	"github.com/errand-bot/errand/state/kv"
)

// A commit ends with a write of a meta page and a sync. If that sync fails, bbolt reports an error, but later
// transactions read and extend the new state. An update that finds its work done would then succeed although a power
// failure undoes it, and the next commit would overwrite pages of the last durable state. Syncing again does not help,
// because the kernel marks pages that it could not write as clean. So, after a failed commit, the meta pages are
// written once more before anything depends on them.

// beginDurable begins the writer's next transaction on a durable state.
func (d *DB) beginDurable() (*bbolt.Tx, error) {
	if err := d.settle(); err != nil {
		d.reportTrouble(err)
		return nil, err
	}
	tx, err := d.bolt.Begin(true)
	if errors.Is(err, berrors.ErrInvalidMapping) {
		err = fmt.Errorf("%w: the file could not be mapped into memory when it grew; errand has to be started again", err)
	}
	if err != nil {
		d.reportTrouble(err)
	}
	return tx, err
}

// commit commits tx. When it returns nil the writes are durable. After an error they are not, or it is unknown until
// settle succeeds.
func (d *DB) commit(tx *bbolt.Tx, written []kv.Write) (err error) {
	defer func() { d.reportTrouble(err) }()
	id := tx.ID()
	if err = tx.Commit(); err == nil {
		d.wakers.Wake(written)
		return nil
	}
	d.unsure = true
	if !d.isLastVisible(id) {
		return err
	}
	d.late = written
	if again := d.settle(); again != nil {
		return errors.Join(err, again)
	}
	return nil
}

// reportTrouble reports to Options.Trouble when failures of the disk begin and end.
func (d *DB) reportTrouble(err error) {
	troubled := err != nil
	if troubled != d.troubled && d.opts.Trouble != nil {
		d.opts.Trouble(err)
	}
	d.troubled = troubled
}

// isLastVisible reports whether the transaction with the given ID is the last visible one.
func (d *DB) isLastVisible(id int) bool {
	tx, err := d.bolt.Begin(false)
	if err != nil {
		return false
	}
	defer func() { _ = tx.Rollback() }() // ending a read transaction cannot lose data
	return tx.ID() == id
}

// settle makes the readable state durable if the last commit failed or the file was just replaced, and then notifies the callers that
// wait for its writes.
func (d *DB) settle() error {
	if d.renamed {
		if err := durable.SyncDir(filepath.Dir(d.path)); err != nil {
			return fmt.Errorf("sync the folder of the compacted file: %w", err)
		}
		d.renamed = false
	}
	if !d.unsure {
		return nil
	}
	if err := rewriteMeta(d.bolt, d.file); err != nil {
		return fmt.Errorf("repeat the write of unsynced pages: %w", err)
	}
	d.wakers.Wake(d.late)
	d.unsure, d.late = false, nil
	return nil
}

// rewriteMeta writes both meta pages unchanged and syncs the file and its size. The pages that they refer to were
// synced before. Open does this, too, because a new process cannot know of an earlier failed sync.
func rewriteMeta(bolt *bbolt.DB, file *os.File) error {
	size := bolt.Info().PageSize
	pages := make([]byte, 2*size)
	if _, err := file.ReadAt(pages, 0); err != nil {
		return err
	}
	for at := 0; at < len(pages); at += size {
		if _, err := file.WriteAt(pages[at:at+size], int64(at)); err != nil {
			return err
		}
	}
	return file.Sync()
}
