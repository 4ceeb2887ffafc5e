package kv

import (
	"bytes"
	"fmt"
	"slices"
	"sort"
	"strings"
)

// Write is one change of a key: a put, or a deletion.
type Write struct {
	Key    string
	Value  []byte
	Delete bool
}

// Buffer is a Tx over a Reader that collects writes. A backend runs a closure on a Buffer, then takes Writes and
// commits them. It enforces the limits, and the closure can read its own writes. A Buffer is for one run of one
// closure.
type Buffer struct {
	base     Reader
	declared []string
	writes   map[string]Write
	reads    map[string]struct{}
	bytes    int
	err      error
}

var _ Tx = (*Buffer)(nil)

// NewBuffer returns an empty Buffer over base. Range is allowed under the declared prefixes.
func NewBuffer(base Reader, declared []string) *Buffer {
	return &Buffer{base: base, declared: declared, writes: map[string]Write{}, reads: map[string]struct{}{}}
}

// Run runs fn on b. It returns fn's error, or else the first refused write or read, even if fn ignored it.
func (b *Buffer) Run(fn func(Tx) error) error {
	if err := fn(b); err != nil {
		return err
	}
	return b.err
}

// Get implements Reader.
func (b *Buffer) Get(key string) ([]byte, error) {
	if w, ok := b.writes[key]; ok {
		if w.Delete {
			return nil, fmt.Errorf("get %q: %w", key, ErrNotFound)
		}
		return slices.Clone(w.Value), nil
	}
	b.reads[key] = struct{}{}
	if len(b.reads) > MaxReads {
		return nil, b.setRefusal(fmt.Errorf("get %q: %w (%d)", key, ErrTooManyReads, len(b.reads)))
	}
	return b.base.Get(key)
}

// Range implements Reader.
func (b *Buffer) Range(prefix, from string, limit int) ([]Pair, error) {
	if !slices.ContainsFunc(b.declared, func(p string) bool { return strings.HasPrefix(prefix, p) }) {
		return nil, b.setRefusal(fmt.Errorf("range %q: %w", prefix, ErrRange))
	}
	own := b.writesWithPrefix(prefix, from)
	want := limit
	if want > 0 {
		want += len(own) // each own write may hide one pair of the base
	}
	base, err := b.base.Range(prefix, from, want)
	if err != nil {
		return nil, err
	}
	merged := merge(base, own)
	if limit > 0 && len(merged) > limit {
		merged = merged[:limit]
	}
	return merged, nil
}

// Put implements Tx.
func (b *Buffer) Put(key string, value []byte) error {
	if len(value) > MaxValueBytes {
		return b.setRefusal(fmt.Errorf("put %q: value of %d bytes: %w", key, len(value), ErrTooLarge))
	}
	return b.write(Write{Key: key, Value: append([]byte{}, value...)})
}

// Delete implements Tx.
func (b *Buffer) Delete(key string) error {
	return b.write(Write{Key: key, Delete: true})
}

// Writes returns the changes in the order of their keys, one per key.
func (b *Buffer) Writes() []Write { return b.writesWithPrefix("", "") }

// Equal reports whether both buffers hold the same writes.
func (b *Buffer) Equal(other *Buffer) bool {
	return slices.EqualFunc(b.Writes(), other.Writes(), func(x, y Write) bool {
		return x.Key == y.Key && x.Delete == y.Delete && bytes.Equal(x.Value, y.Value)
	})
}

func (b *Buffer) write(w Write) error {
	if w.Key == "" || len(w.Key) > MaxKeyBytes {
		return b.setRefusal(fmt.Errorf("write %.40q: %w", w.Key, ErrInvalidKey))
	}
	if old, ok := b.writes[w.Key]; ok {
		b.bytes -= len(old.Key) + len(old.Value)
	}
	b.writes[w.Key] = w
	b.bytes += len(w.Key) + len(w.Value)
	switch {
	case len(b.writes) > MaxWrites:
		return b.setRefusal(fmt.Errorf("write %q: %w (%d)", w.Key, ErrTooManyWrites, len(b.writes)))
	case b.bytes > MaxUpdateBytes:
		return b.setRefusal(fmt.Errorf("write %q: update of %d bytes: %w", w.Key, b.bytes, ErrTooLarge))
	}
	return nil
}

// setRefusal stores the first refusal, so that a closure cannot ignore it.
func (b *Buffer) setRefusal(err error) error {
	if b.err == nil {
		b.err = err
	}
	return err
}

// writesWithPrefix returns the buffered writes with the prefix, from the given key on, in the order of their keys.
func (b *Buffer) writesWithPrefix(prefix, from string) []Write {
	var found []Write
	for key, w := range b.writes {
		if strings.HasPrefix(key, prefix) && key >= from {
			found = append(found, w)
		}
	}
	sort.Slice(found, func(i, j int) bool { return found[i].Key < found[j].Key })
	return found
}

// merge applies writes to pairs; both are in the order of their keys.
func merge(base []Pair, own []Write) []Pair {
	var merged []Pair
	for len(base) > 0 || len(own) > 0 {
		switch {
		case len(own) == 0 || len(base) > 0 && base[0].Key < own[0].Key:
			merged, base = append(merged, base[0]), base[1:]
			continue
		case len(base) > 0 && base[0].Key == own[0].Key:
			base = base[1:]
		}
		if !own[0].Delete {
			merged = append(merged, Pair{Key: own[0].Key, Value: slices.Clone(own[0].Value)})
		}
		own = own[1:]
	}
	return merged
}
