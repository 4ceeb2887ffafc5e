// Package boltkv stores errand's data in one bbolt file.
//
// A single writer runs updates one after another and commits all waiting updates together: under load many updates
// share an fsync, and a lone update never waits for others. Every commit is synced; no option turns that off (sync.go).
// The file is locked while it is open.
//
// Start with Open, then writer.go for the group commit and settle.go for failing disks. Backup is in maintain.go, Compact in
// compact.go, Check and CheckFile in check.go.
package boltkv

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/errand-bot/errand/internal/durable"
	"github.com/errand-bot/errand/state/kv"
)

// ErrLocked is the error for a file that another process, or this one, has open.
var ErrLocked = errors.New("another errand has this file open")

const (
	bucketName  = "kv"
	scanPage    = 256
	defaultWait = 2 * time.Second
	initialMmap = 64 << 20
	fileMode    = 0o600
)

// Options are the options of Open. The zero value is ready to use.
type Options struct {
	// LockWait is how long Open waits for the file's lock; zero means 2 s.
	LockWait time.Duration
	// Declared lists the prefixes under which updates may read ranges.
	Declared []string
	// Trouble is called with the error when updates begin to fail because of the disk, and with nil when one succeeds
	// again. It may be nil, and must return immediately.
	Trouble func(error)
	// CheckRepeatable runs each update's closure twice and refuses updates whose writes differ. It is for tests.
	CheckRepeatable bool
}

// DB implements kv.DB with a bbolt file.
type DB struct {
	path        string
	opts        Options
	wakers      kv.Wakers
	requests    chan *request
	compactions chan *compaction
	closing     chan struct{}
	stopped     chan struct{}
	close       func() error

	// Only the writer changes these, when it replaces the file by a compacted one; it locks mu for that. A reader holds mu until its
	// transaction has ended.
	mu   sync.RWMutex
	bolt *bbolt.DB
	file *os.File // the file that bolt has open

	// Used by the writer only; see settle.go.
	unsure   bool
	renamed  bool // it is unknown whether the new name of the file is durable
	late     []kv.Write
	troubled bool
}

var _ kv.DB = (*DB)(nil)

// Open opens or creates the file at path, and its directory if needed, accessible to this user only. If another process
// has the file open it returns ErrLocked. The caller must call Close.
func Open(path string, opts Options) (*DB, error) {
	if opts.LockWait <= 0 {
		opts.LockWait = defaultWait
	}
	bolt, file, err := openFile(path, opts.LockWait)
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", path, err)
	}
	if err := os.Remove(path + compactExt); err != nil && !errors.Is(err, fs.ErrNotExist) { // a process died while it compacted the file
		return nil, errors.Join(fmt.Errorf("open store %s: remove an incomplete copy: %w", path, err), bolt.Close())
	}
	db := &DB{
		path: path, bolt: bolt, file: file, opts: opts,
		requests: make(chan *request), compactions: make(chan *compaction), closing: make(chan struct{}), stopped: make(chan struct{}),
	}
	db.close = sync.OnceValue(func() error {
		close(db.closing)
		<-db.stopped
		return db.bolt.Close()
	})
	go db.write()
	return db, nil
}

// openFile opens and locks the file and makes its last commit durable. The returned file is closed with the database.
func openFile(path string, wait time.Duration) (bolt *bbolt.DB, file *os.File, err error) {
	dir := filepath.Dir(path)
	if err := durable.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, fmt.Errorf("create directory: %w", err)
	}
	_, there := os.Stat(path)
	bolt, err = bbolt.Open(path, fileMode, &bbolt.Options{
		Timeout:      wait,
		FreelistType: bbolt.FreelistMapType,
		NoSync:       noSync,
		// When a file outgrows its mapping the writer waits for all readers; a large initial mapping makes this rare.
		InitialMmapSize: initialMmap,
		OpenFile: func(name string, flag int, mode os.FileMode) (f *os.File, err error) {
			file, err = os.OpenFile(name, flag, mode)
			return file, err
		},
	})
	if errors.Is(err, berrors.ErrTimeout) {
		return nil, nil, ErrLocked
	}
	if err != nil {
		if errors.Is(there, fs.ErrNotExist) {
			_ = os.Remove(path) // a full disk may have left an incomplete database, which cannot be opened
		}
		return nil, nil, err
	}
	if !stillAt(path, file) {
		return nil, nil, errors.Join(ErrLocked, bolt.Close())
	}
	// The directory entry of a new file must survive a power failure.
	if err := errors.Join(prepare(bolt, file), durable.SyncDir(dir)); err != nil {
		return nil, nil, errors.Join(err, bolt.Close())
	}
	return bolt, file, nil
}

func prepare(bolt *bbolt.DB, file *os.File) error {
	if err := rewriteMeta(bolt, file); err != nil {
		return err
	}
	return bolt.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucketIfNotExists([]byte(bucketName))
		return err
	})
}

// stillAt reports whether path still names file. It does not if Compact replaced the file while this process waited for
// the lock of the old one.
func stillAt(path string, file *os.File) bool {
	there, err := os.Stat(path)
	if err != nil {
		return false
	}
	ours, err := file.Stat()
	return err == nil && os.SameFile(there, ours)
}

// View implements kv.DB.
func (d *DB) View(ctx context.Context, fn func(kv.Reader) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return d.view(func(tx *bbolt.Tx) error { return fn(reader{tx.Bucket([]byte(bucketName))}) })
}

// view calls fn with a read transaction. fn must not call the database: while Compact waits for present reads, new ones wait for it.
func (d *DB) view(fn func(*bbolt.Tx) error) error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	tx, err := d.bolt.Begin(false)
	if err != nil {
		return closedError(err)
	}
	defer func() { _ = tx.Rollback() }() // ending a read transaction cannot lose data
	return fn(tx)
}

// Scan implements kv.DB. It holds no transaction while fn runs.
func (d *DB) Scan(ctx context.Context, prefix, from string, limit int, fn func(kv.Pair) error) error {
	for seen := 0; limit <= 0 || seen < limit; {
		want := scanPage
		if limit > 0 {
			want = min(want, limit-seen)
		}
		var page []kv.Pair
		err := d.View(ctx, func(r kv.Reader) (err error) {
			page, err = r.Range(prefix, from, want)
			return err
		})
		if err != nil {
			return err
		}
		for _, pair := range page {
			if err := fn(pair); errors.Is(err, kv.ErrStop) {
				return nil
			} else if err != nil {
				return err
			}
		}
		if len(page) < want {
			return nil
		}
		seen += len(page)
		from = kv.After(page[len(page)-1].Key)
	}
	return nil
}

// Notify implements kv.DB.
func (d *DB) Notify(ctx context.Context, prefix string) <-chan struct{} {
	return d.wakers.Notify(ctx, prefix)
}

// Close implements kv.DB. Updates that have begun are committed; others return kv.ErrClosed.
func (d *DB) Close() error { return d.close() }

func closedError(err error) error {
	if errors.Is(err, berrors.ErrDatabaseNotOpen) {
		return kv.ErrClosed
	}
	return err
}

// reader reads a bucket of an open transaction.
type reader struct{ bucket *bbolt.Bucket }

func (r reader) Get(key string) ([]byte, error) {
	value := r.bucket.Get([]byte(key))
	if value == nil {
		return nil, fmt.Errorf("get %q: %w", key, kv.ErrNotFound)
	}
	return slices.Clone(value), nil
}

func (r reader) Range(prefix, from string, limit int) ([]kv.Pair, error) {
	var pairs []kv.Pair
	cursor := r.bucket.Cursor()
	for k, v := cursor.Seek([]byte(max(prefix, from))); k != nil; k, v = cursor.Next() {
		key := string(k)
		if !strings.HasPrefix(key, prefix) || limit > 0 && len(pairs) == limit {
			break
		}
		pairs = append(pairs, kv.Pair{Key: key, Value: append([]byte{}, v...)})
	}
	return pairs, nil
}
