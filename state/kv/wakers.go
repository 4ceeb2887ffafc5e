package kv

import (
	"context"
	"strings"
	"sync"
)

// Wakers notifies waiting callers of writes under their prefixes. Its zero value is ready to use, and all methods may
// be called concurrently. Backends implement DB.Notify with it.
type Wakers struct {
	mu      sync.Mutex
	waiting map[chan struct{}]string
}

// Notify returns a channel as described for DB.Notify. It is forgotten when ctx ends.
func (w *Wakers) Notify(ctx context.Context, prefix string) <-chan struct{} {
	woken := make(chan struct{}, 1)
	w.mu.Lock()
	if w.waiting == nil {
		w.waiting = map[chan struct{}]string{}
	}
	w.waiting[woken] = prefix
	w.mu.Unlock()
	context.AfterFunc(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.waiting, woken)
	})
	return woken
}

// Wake notifies all callers whose prefix one of the writes has. It never blocks. Call it when the writes are readable.
func (w *Wakers) Wake(writes []Write) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for woken, prefix := range w.waiting {
		if !anyWithPrefix(writes, prefix) {
			continue
		}
		select {
		case woken <- struct{}{}:
		default: // an earlier notification is not yet received
		}
	}
}

func anyWithPrefix(writes []Write, prefix string) bool {
	for _, write := range writes {
		if strings.HasPrefix(write.Key, prefix) {
			return true
		}
	}
	return false
}
