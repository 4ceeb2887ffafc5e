package boltkv

import (
	"context"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/errand-bot/errand/state/kv"
)

// The limits of one commit; further updates go into the next commit.
const (
	maxBatch      = 256
	maxBatchBytes = 8 << 20
)

// request is one update on its way through the writer. Its closure runs on the goroutine that called Update when the
// writer reaches it, so that a panic surfaces in the caller.
type request struct {
	turn chan *bbolt.Bucket // the writer's transaction, reserved for this closure until ran is closed
	ran  chan struct{}      // closed when the closure has returned, panicked or exited
	done chan error         // the result, after the commit

	// Set before ran is closed: the writes to commit, or the reason for having none.
	writes []kv.Write
	err    error
}

// Update implements kv.DB.
func (d *DB) Update(ctx context.Context, fn func(kv.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r := &request{turn: make(chan *bbolt.Bucket, 1), ran: make(chan struct{}), done: make(chan error, 1)}
	select {
	case d.requests <- r:
	case <-ctx.Done():
		return ctx.Err()
	case <-d.closing:
		return kv.ErrClosed
	}
	// From here on the writer always answers, and soon.
	r.run(<-r.turn, d.opts, fn)
	return <-r.done
}

// run runs the closure and stores its writes or its error in r.
func (r *request) run(bucket *bbolt.Bucket, opts Options, fn func(kv.Tx) error) {
	defer close(r.ran)
	if bucket == nil {
		return // the writer could not begin a transaction and returns the error itself
	}
	buffer := kv.NewBuffer(reader{bucket}, opts.Declared)
	r.err = buffer.Run(fn)
	if opts.CheckRepeatable {
		again := kv.NewBuffer(reader{bucket}, opts.Declared)
		err := again.Run(fn)
		if !buffer.Equal(again) || (err == nil) != (r.err == nil) {
			r.err = fmt.Errorf("update: %w", kv.ErrNotRepeatable)
		}
	}
	if r.err == nil {
		r.writes = buffer.Writes()
	}
}

// write is the writer goroutine: it commits batches and compacts the file until the database closes.
func (d *DB) write() {
	defer close(d.stopped)
	for {
		select {
		case r := <-d.requests:
			d.commitBatch(r)
		case c := <-d.compactions:
			c.before, c.after, c.err = d.compact()
			close(c.done)
		case <-d.closing:
			return
		}
	}
}

// commitBatch runs the closures of first and of all waiting requests, and commits once. No request is answered before
// the commit, because a closure may have read the writes of an earlier one.
func (d *DB) commitBatch(first *request) {
	tx, err := d.beginDurable()
	if err != nil {
		first.turn <- nil
		first.done <- fmt.Errorf("begin: %w", err)
		return
	}
	bucket := tx.Bucket([]byte(bucketName))
	var batch []*request
	var written []kv.Write
	size := 0
	for r := first; r != nil && err == nil; {
		r.turn <- bucket
		<-r.ran
		batch = append(batch, r)
		err = apply(bucket, r.writes)
		written = append(written, r.writes...)
		for _, w := range r.writes {
			size += len(w.Key) + len(w.Value)
		}
		r = d.nextRequest(err == nil && len(batch) < maxBatch && size < maxBatchBytes)
	}
	if err != nil || len(written) == 0 {
		_ = tx.Rollback() // nothing was written, so nothing can be lost
	} else {
		err = d.commit(tx, written)
	}
	for _, r := range batch {
		if err != nil {
			r.done <- fmt.Errorf("commit: %w", err)
			continue
		}
		r.done <- r.err
	}
}

// nextRequest returns a waiting request, or nil if there is none or the batch has no room.
func (d *DB) nextRequest(room bool) *request {
	if !room {
		return nil
	}
	select {
	case r := <-d.requests:
		return r
	default:
		return nil
	}
}

func apply(bucket *bbolt.Bucket, writes []kv.Write) error {
	for _, w := range writes {
		var err error
		if w.Delete {
			err = bucket.Delete([]byte(w.Key))
		} else {
			err = bucket.Put([]byte(w.Key), w.Value)
		}
		if err != nil {
			return fmt.Errorf("write %q: %w", w.Key, err)
		}
	}
	return nil
}
