// Package boltkv keeps errand's store in one bbolt file.
//
// Updates run one after another on a single writer, which takes everybody who is waiting into one
// commit: under load many updates share an fsync, and a lone update never waits for company. Every
// commit is synced; no option turns that off (sync.go). The file is locked while it is open.
//
// Start reading at Open, then writer.go for the group commit, and settle.go for a disk that fails. Compact and Backup are in maintain.go.
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

// ErrLocked says that another process, or this one, has the file open.
var ErrLocked = errors.New("another errand has this file open")

const (
	bucketName  = "kv"
	scanPage    = 256
	defaultWait = 2 * time.Second
	initialMmap = 64 << 20
	fileMode    = 0o600
)

// Options are what Open may be told. The zero value is ready.
type Options struct {
	// LockWait is how long Open waits for the file's lock; zero means 2 s.
	LockWait time.Duration
	// Declared lists the prefixes under which updates may read ranges.
	Declared []string
	// Trouble is called with the reason when updates begin to fail because of the disk, and with nil when one succeeds again. It may
	// be nil, and has to return at once.
	Trouble func(error)
	// CheckRepeatable runs each update's closure twice and refuses those that differ. It is for tests.
	CheckRepeatable bool
}

// DB is a kv.DB in a bbolt file.
type DB struct {
	bolt     *bbolt.DB
	file     *os.File // which bolt has open
	opts     Options
	wakers   kv.Wakers
	requests chan *request
	closing  chan struct{}
	stopped  chan struct{}
	close    func() error

	// The writer's alone: see settle.go.
	unsure   bool
	late     []kv.Write
	troubled bool
}

var _ kv.DB = (*DB)(nil)

// Open opens or creates the file at path, and its directory if need be, readable by this user only.
// If somebody else has the file open the error is ErrLocked. The caller must call Close.
func Open(path string, opts Options) (*DB, error) {
	if opts.LockWait <= 0 {
		opts.LockWait = defaultWait
	}
	bolt, file, err := openFile(path, opts.LockWait)
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", path, err)
	}
	db := &DB{
		bolt: bolt, file: file, opts: opts,
		requests: make(chan *request), closing: make(chan struct{}), stopped: make(chan struct{}),
	}
	db.close = sync.OnceValue(func() error {
		close(db.closing)
		<-db.stopped
		return bolt.Close()
	})
	go db.write()
	return db, nil
}

// openFile opens the file, and its lock, and makes what it says durable. The file that it returns is closed with the database.
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
		// A file that outgrows its mapping makes the writer wait for all readers; this is rare so.
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
			_ = os.Remove(path) // a disk without room has left part of an empty database, which nobody could open
		}
		return nil, nil, err
	}
	if !stillAt(path, file) {
		return nil, nil, errors.Join(ErrLocked, bolt.Close())
	}
	if err := errors.Join(prepare(bolt, file), durable.SyncDir(dir)); err != nil { // a new file's name must survive a power cut too
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

// stillAt reports whether file is what path names. It is not if Compact replaced the file while we
// waited for the lock of the old one.
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
	tx, err := d.bolt.Begin(false)
	if err != nil {
		return closedError(err)
	}
	defer func() { _ = tx.Rollback() }() // a read transaction has nothing to lose
	return fn(reader{tx.Bucket([]byte(bucketName))})
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
			if err := fn(pair); errors.Is(err, kv.Stop) {
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

// Close implements kv.DB. Updates that have begun are committed, others get kv.ErrClosed.
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
