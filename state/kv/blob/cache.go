package blob

import (
	"bytes"
	"reflect"
	"sync"
)

const (
	maxEntries   = 64       // of a cache
	maxEntrySize = 64 << 10 // encoded bytes of each
)

// cache keeps recently decoded values. Copying an unchanged value is ten times as fast as decoding it, and a task is
// read several times for each event. A cache may be used concurrently.
type cache struct {
	cloner  *Cloner
	mu      sync.Mutex
	entries map[string]entry
}

// entry is an immutable value with the stored bytes that it was decoded from.
type entry struct {
	data  []byte
	value reflect.Value
}

// get copies the value that was decoded from data into *v, and reports whether there is one.
func (k *cache) get(key string, data []byte, v any) bool {
	k.mu.Lock()
	d, ok := k.entries[key]
	k.mu.Unlock()
	to := reflect.ValueOf(v).Elem()
	if !ok || d.value.Type() != to.Type() || !bytes.Equal(d.data, data) {
		return false
	}
	k.cloner.copyInto(to, d.value)
	return true
}

// put stores a copy of *v, which was decoded from data.
func (k *cache) put(key string, data []byte, v any) {
	if len(data) > maxEntrySize {
		return
	}
	d := entry{bytes.Clone(data), k.cloner.Clone(reflect.ValueOf(v).Elem())}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.entries == nil {
		k.entries = map[string]entry{}
	}
	for old := range k.entries { // any of them
		if len(k.entries) < maxEntries || k.entries[key].data != nil {
			break
		}
		delete(k.entries, old)
	}
	k.entries[key] = d
}
