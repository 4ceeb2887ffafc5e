// Package kv is what errand needs of a database: ordered keys, consistent reads, small atomic
// updates and a wake-up when something was written.
//
// The interfaces are narrow on purpose, and the contract is as strict on one file as it has to be on
// a cluster: an update is small (see the limits), its closure is pure and may run more than once, and
// it reads ranges only under prefixes that were declared when the database was opened. What holds the
// contract here can later hold it on etcd without a change to the callers.
//
// Start reading at DB. The backend is in boltkv; the suite that every backend must pass is in kvtest.
// Buffer and Wakers are the parts that all backends share.
package kv

import (
	"context"
	"errors"
)

// The limits of one update and of everything that is stored. They are those of etcd with room to
// spare, and every backend enforces them.
const (
	// MaxWrites is the number of distinct keys that one update may put or delete.
	MaxWrites = 100
	// MaxReads is the number of distinct keys that one update may get.
	MaxReads = 100
	// MaxUpdateBytes bounds the sum of all keys and values that one update writes.
	MaxUpdateBytes = 1 << 20
	// MaxValueBytes bounds one value. What is larger is cut into chunks by the caller, or is a file.
	MaxValueBytes = 512 << 10
	// MaxKeyBytes bounds one key.
	MaxKeyBytes = 1 << 10
)

// What a caller may have to tell apart when it reads.
var (
	// ErrNotFound is returned by Get for a key that does not exist.
	ErrNotFound = errors.New("key not found")
	// ErrClosed is returned by everything after Close. Nothing was written.
	ErrClosed = errors.New("database is closed")
	// Stop is returned by a Scan's function to end the scan early; Scan then returns nil.
	Stop = errors.New("stop scanning") //nolint:errname,staticcheck // it is a signal like fs.SkipAll
)

// What an update may be refused for. Nothing was written in any of these cases.
var (
	// ErrTooManyWrites says that an update put or deleted more than MaxWrites keys.
	ErrTooManyWrites = errors.New("too many writes in one update")
	// ErrTooManyReads says that an update got more than MaxReads keys.
	ErrTooManyReads = errors.New("too many reads in one update")
	// ErrTooLarge says that a value is over MaxValueBytes, or an update over MaxUpdateBytes.
	ErrTooLarge = errors.New("too large for the database")
	// ErrInvalidKey says that a key is empty or over MaxKeyBytes.
	ErrInvalidKey = errors.New("invalid key")
	// ErrRange says that an update read a range outside of every declared prefix.
	ErrRange = errors.New("range read inside an update under an undeclared prefix")
	// ErrConflict says that other writers changed what the update had read each time it was tried.
	// The caller may try again later. A backend whose updates run one after another never returns it.
	ErrConflict = errors.New("update conflicts with other writers")
	// ErrNotRepeatable says that a closure wrote something else when it ran a second time on the same
	// state. It is a defect of the closure, found only where the backend was told to look.
	ErrNotRepeatable = errors.New("closure is not repeatable")
)

// Pair is a key with its value.
type Pair struct {
	Key   string
	Value []byte
}

// Reader reads from one consistent state. Values belong to the caller. It is valid only inside the
// closure that it was given to, and only on that closure's goroutine.
type Reader interface {
	// Get returns the value of key, or an error that is ErrNotFound.
	Get(key string) ([]byte, error)
	// Range returns the pairs whose key starts with prefix and is not less than from, in the order of
	// the keys' bytes; at most limit of them if limit is positive. An empty from means the beginning.
	// Inside an update the prefix must lie under a declared one, else the error is ErrRange.
	Range(prefix, from string, limit int) ([]Pair, error)
}

// Tx reads and writes inside an update. It reads what it wrote. The errors of Put and Delete need not
// be looked at: an update with a refused write fails as a whole, with the first such error.
type Tx interface {
	Reader
	// Put sets the value of key. The value is copied.
	Put(key string, value []byte) error
	// Delete removes key. A key that does not exist may be deleted.
	Delete(key string) error
}

// DB is a database. All methods may be called concurrently.
type DB interface {
	// View calls fn with a state in which every update is either wholly there or not at all, and
	// returns fn's error. The closure should be short and must not call the DB itself: see Scan for
	// what takes long.
	View(ctx context.Context, fn func(Reader) error) error
	// Update calls fn and makes its writes durable, all or none, isolated from all other updates.
	// When it returns nil the writes survive a power cut. If fn returns an error nothing is written
	// and Update returns that error as it is. The same holds for the errors of this package and for a
	// context that ended; after any other error it is unknown whether the writes are there.
	//
	// The closure must be pure: it may run more than once, and must write the same each time that it
	// reads the same. So take times and ids before, set results from scratch, do not call the DB.
	Update(ctx context.Context, fn func(Tx) error) error
	// Scan calls fn for each pair as in Range, page by page and outside of any transaction: fn may
	// take its time and may call the DB. A key that exists during the whole scan is seen exactly once;
	// one that comes or goes meanwhile is seen at most once. An error of fn ends the scan and is
	// returned, but for Stop.
	Scan(ctx context.Context, prefix, from string, limit int, fn func(Pair) error) error
	// Notify returns a channel that receives after updates which wrote under prefix, until ctx ends.
	// Wake-ups are coalesced: one that is not yet received stands for all later ones. So receive, then
	// read. The channel is never closed.
	Notify(ctx context.Context, prefix string) <-chan struct{}
	// Close waits for what is under way and releases the database. It may be called twice.
	Close() error
}

// After returns the least key greater than key: the from that continues behind it.
func After(key string) string { return key + "\x00" }
