// Package kv defines the database that errand needs: ordered keys, consistent reads, small atomic updates, and
// notifications of writes.
//
// The contract is as strict for one file as for a cluster: an update is small (see the limits), its closure is pure and
// may run more than once, and it reads ranges only under prefixes that were declared when the database was opened. A
// backend on etcd could therefore replace the present one without changes to the callers.
//
// Start here: [DB], and [Update], which callers use. The backend is in boltkv; the suite that every backend must pass is
// in kvtest. [Buffer] and [Wakers] are the parts that all backends share.
package kv

import (
	"context"
	"errors"
)

// The limits of one update and of stored values. They are below etcd's limits, and every backend enforces them.
const (
	// MaxWrites is the number of distinct keys that one update may put or delete.
	MaxWrites = 100
	// MaxReads is the number of distinct keys that one update may get.
	MaxReads = 100
	// MaxUpdateBytes limits the sum of all keys and values that one update writes.
	MaxUpdateBytes = 1 << 20
	// MaxValueBytes limits one value. Callers split larger data into chunks or store it in files.
	MaxValueBytes = 512 << 10
	// MaxKeyBytes limits one key.
	MaxKeyBytes = 1 << 10
)

// Errors of reads, and the signal that ends a scan.
var (
	// ErrNotFound is returned by Get for a key that does not exist.
	ErrNotFound = errors.New("key not found")
	// ErrClosed is returned by every method after Close. Nothing was written.
	ErrClosed = errors.New("database is closed")
	// ErrStop is returned by a Scan's function to end the scan early; Scan then returns nil.
	ErrStop = errors.New("stop scanning") //nolint:errname,staticcheck // it is a signal like fs.SkipAll
)

// Errors for refused updates. Nothing was written in any of these cases.
var (
	// ErrTooManyWrites is the error for an update that puts or deletes more than MaxWrites keys.
	ErrTooManyWrites = errors.New("too many writes in one update")
	// ErrTooManyReads is the error for an update that gets more than MaxReads keys.
	ErrTooManyReads = errors.New("too many reads in one update")
	// ErrTooLarge is the error for a value over MaxValueBytes or an update over MaxUpdateBytes.
	ErrTooLarge = errors.New("too large for the database")
	// ErrInvalidKey is the error for a key that is empty or over MaxKeyBytes.
	ErrInvalidKey = errors.New("invalid key")
	// ErrRange is the error for an update that reads a range outside of every declared prefix.
	ErrRange = errors.New("range read inside an update under an undeclared prefix")
	// ErrConflict is the error for an update whose reads were changed by other writers each time it was tried. The
	// caller may try again later. A backend that serializes updates never returns it.
	ErrConflict = errors.New("update conflicts with other writers")
	// ErrNotRepeatable is the error for a closure whose writes differed when it ran a second time on the same state. It
	// is a defect of the closure. A backend detects it only if it was opened with that check.
	ErrNotRepeatable = errors.New("closure is not repeatable")
)

// Pair is a key with its value.
type Pair struct {
	Key   string
	Value []byte
}

// Reader reads from one consistent state. The caller owns the returned values. A Reader is valid only inside the
// closure that received it, and only on that closure's goroutine.
type Reader interface {
	// Get returns the value of key, or an error that is ErrNotFound.
	Get(key string) ([]byte, error)
	// Range returns the pairs whose key starts with prefix and is not less than from, in the order of
	// the keys' bytes; at most limit of them if limit is positive. An empty from means the beginning.
	// Inside an update the prefix must lie under a declared one, else the error is ErrRange.
	Range(prefix, from string, limit int) ([]Pair, error)
}

// Tx reads and writes inside an update. Reads include its own writes. Callers may ignore the errors of Put and Delete:
// an update with a refused write fails as a whole, with the first such error.
type Tx interface {
	Reader
	// Put sets the value of key. The value is copied.
	Put(key string, value []byte) error
	// Delete removes key. A key that does not exist may be deleted.
	Delete(key string) error
}

// DB is a database. All methods may be called concurrently.
type DB interface {
	// View calls fn with a consistent state, in which every update is either complete or absent, and returns fn's
	// error. The closure should be short and must not call the DB itself; use Scan for long work.
	View(ctx context.Context, fn func(Reader) error) error
	// Update calls fn and commits its writes atomically, durably, and isolated from all other updates. When it returns
	// nil the writes survive a power failure. If fn returns an error nothing is written, and Update returns that error
	// unchanged. Nothing is written either if Update returns an error of this package or of the context. After any
	// other error it is unknown whether the writes are durable.
	//
	// The closure must be pure: it may run more than once, and must write the same if it reads the same. So read the
	// clock and generate IDs before, overwrite results instead of appending to them, and do not call the DB.
	Update(ctx context.Context, fn func(Tx) error) error
	// Scan calls fn for each pair as in Range, page by page and outside of any transaction: fn may be slow and may call
	// the DB. A key that exists during the whole scan is seen exactly once; one that is created or deleted during the
	// scan is seen at most once. If fn returns an error the scan ends and returns it, except ErrStop.
	Scan(ctx context.Context, prefix, from string, limit int, fn func(Pair) error) error
	// Notify returns a channel that receives after updates that write under prefix, until ctx ends. Notifications are
	// coalesced: an unreceived one stands for all later ones, so receive before you read. The channel is never closed.
	Notify(ctx context.Context, prefix string) <-chan struct{}
	// Close waits for running updates and releases the database. It may be called twice.
	Close() error
}

// After returns the smallest key greater than key; pass it as from to continue after key.
func After(key string) string { return key + "\x00" }
