package boltkv

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"go.etcd.io/bbolt"

	"github.com/errand-bot/errand/state/kv"
)

const (
	compactTxBytes = 4 << 20    // copied per transaction
	compactExt     = ".compact" // follows the name of the file that is being written
)

// compaction is a request to the writer to compact the file.
type compaction struct {
	done          chan struct{} // closed when the result is set
	before, after int64
	err           error
}

// Compact rewrites the file without its free pages, which contain data that was deleted or replaced: when it returns nil, the file
// has none of it. It returns the sizes before and after. The database stays in use: updates wait until the file is rewritten, and
// reads only while it is replaced, after the present ones have ended. The old file is replaced when the new one is complete and
// synced, so a crash leaves one of the two, with every update. After an error the database stays in use, with
// the new file if that had replaced the old one already.
func (d *DB) Compact(ctx context.Context) (before, after int64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, 0, err
	}
	c := &compaction{done: make(chan struct{})}
	select {
	case d.compactions <- c:
	case <-ctx.Done():
		return 0, 0, ctx.Err()
	case <-d.closing:
		return 0, 0, kv.ErrClosed
	}
	<-c.done // the copy cannot be interrupted
	if c.err != nil {
		return 0, 0, fmt.Errorf("compact store %s: %w", d.path, c.err)
	}
	return c.before, c.after, nil
}

// compact does what Compact describes, in the writer.
func (d *DB) compact() (before, after int64, err error) {
	if err := d.settle(); err != nil {
		return 0, 0, err
	}
	info, err := d.file.Stat()
	if err != nil {
		return 0, 0, err
	}
	target := d.path + compactExt
	bolt, file, err := compactInto(target, d.bolt)
	if err != nil {
		return 0, 0, errors.Join(err, removeCopy(target))
	}
	compacted, err := file.Stat()
	if err != nil {
		return 0, 0, errors.Join(err, bolt.Close(), removeCopy(target))
	}
	d.mu.Lock()
	// Both files are locked meanwhile, so that no other process opens one of them.
	if err := os.Rename(target, d.path); err != nil {
		d.mu.Unlock()
		return 0, 0, errors.Join(err, bolt.Close(), removeCopy(target))
	}
	old := d.bolt
	d.bolt, d.file, d.renamed = bolt, file, true
	d.mu.Unlock() // reads use the new file from here on
	return info.Size(), compacted.Size(), errors.Join(d.settle(), old.Close())
}

// compactInto copies a database to a new file, which it returns open and locked.
func compactInto(path string, source *bbolt.DB) (*bbolt.DB, *os.File, error) {
	if err := removeCopy(path); err != nil {
		return nil, nil, err
	}
	target, err := bbolt.Open(path, fileMode, &bbolt.Options{Timeout: defaultWait})
	if err != nil {
		return nil, nil, err
	}
	err = bbolt.Compact(target, source, compactTxBytes)
	if err == nil {
		err = target.Sync()
	}
	if err = errors.Join(err, target.Close()); err != nil {
		return nil, nil, err
	}
	return openFile(path, defaultWait)
}

// removeCopy removes an incomplete copy.
func removeCopy(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
