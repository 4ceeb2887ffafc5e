package boltkv

import (
	"errors"
	"fmt"
	"os"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/errand-bot/errand/state/kv"
)

// A commit ends with a meta page and a sync. If that sync fails, bbolt reports an error, but reads and builds on what it wrote from
// then on: an update that finds its work done would be told so, although a power cut undoes it, and the next commit would write over
// pages that the disk's last good state consists of. To sync again does not help, because the kernel takes pages that it could not
// write for clean. So, after any commit that failed, the meta pages are written once more before anything is built on them.

// begin begins the writer's next transaction, on a state that is durable.
func (d *DB) begin() (*bbolt.Tx, error) {
	if err := d.settle(); err != nil {
		d.tell(err)
		return nil, err
	}
	tx, err := d.bolt.Begin(true)
	if errors.Is(err, berrors.ErrInvalidMapping) {
		err = fmt.Errorf("%w: the file could not be mapped into memory when it grew; errand has to be started again", err)
	}
	if err != nil {
		d.tell(err)
	}
	return tx, err
}

// commit commits. When it returns nil what was written is durable; after an error it is not, or nobody knows until settle succeeds.
func (d *DB) commit(tx *bbolt.Tx, written []kv.Write) (err error) {
	defer func() { d.tell(err) }()
	id := tx.ID()
	if err = tx.Commit(); err == nil {
		d.wakers.Wake(written)
		return nil
	}
	d.unsure = true
	if !d.shows(id) {
		return err
	}
	d.late = written
	if again := d.settle(); again != nil {
		return errors.Join(err, again)
	}
	return nil
}

// tell tells of trouble with the disk when it begins and when it is over.
func (d *DB) tell(err error) {
	troubled := err != nil
	if troubled != d.troubled && d.opts.Trouble != nil {
		d.opts.Trouble(err)
	}
	d.troubled = troubled
}

// shows reports whether a transaction's number is the last one, which makes it visible.
func (d *DB) shows(id int) bool {
	tx, err := d.bolt.Begin(false)
	if err != nil {
		return false
	}
	defer func() { _ = tx.Rollback() }() // a read transaction has nothing to lose
	return tx.ID() == id
}

// settle makes durable what can be read, if the last commit has left that open, and then tells those who wait for it.
func (d *DB) settle() error {
	if !d.unsure {
		return nil
	}
	if err := rewriteMeta(d.bolt, d.file); err != nil {
		return fmt.Errorf("write again what could not be synced: %w", err)
	}
	d.wakers.Wake(d.late)
	d.unsure, d.late = false, nil
	return nil
}

// rewriteMeta writes both meta pages as they are and syncs the file, with its size. What they point to was synced before they were
// written. A process that was started after a failed sync cannot know of it, so Open does this, too.
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
