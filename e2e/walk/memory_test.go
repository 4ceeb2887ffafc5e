package walk

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/errand-bot/errand/state/kv"
)

// memory is a database that exists as long as its walk and survives errand's deaths. It is for one goroutine.
type memory struct {
	keys   []string // sorted
	values map[string][]byte
	wakers kv.Wakers
	// version grows with every update that wrote something.
	version int
	// commit is called before and after the writes of an update take effect: errand may die at either.
	commit func(ctx context.Context, effect func()) error
}

var _ kv.DB = (*memory)(nil)

func newMemory() *memory {
	return &memory{values: map[string][]byte{}, commit: func(_ context.Context, effect func()) error { effect(); return nil }}
}

// Get implements kv.Reader.
func (m *memory) Get(key string) ([]byte, error) {
	v, ok := m.values[key]
	if !ok {
		return nil, fmt.Errorf("get %q: %w", key, kv.ErrNotFound)
	}
	return slices.Clone(v), nil
}

// Range implements kv.Reader.
func (m *memory) Range(prefix, from string, limit int) ([]kv.Pair, error) {
	var out []kv.Pair
	for i := sort.SearchStrings(m.keys, max(prefix, from)); i < len(m.keys) && strings.HasPrefix(m.keys[i], prefix); i++ {
		if limit > 0 && len(out) == limit {
			break
		}
		out = append(out, kv.Pair{Key: m.keys[i], Value: slices.Clone(m.values[m.keys[i]])})
	}
	return out, nil
}

// named returns the rest of the keys that begin with prefix.
func (m *memory) named(prefix string) []string {
	var names []string
	for i := sort.SearchStrings(m.keys, prefix); i < len(m.keys) && strings.HasPrefix(m.keys[i], prefix); i++ {
		names = append(names, strings.TrimPrefix(m.keys[i], prefix))
	}
	return names
}

// View implements kv.DB.
func (m *memory) View(ctx context.Context, fn func(kv.Reader) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return fn(m)
}

// Update implements kv.DB.
func (m *memory) Update(ctx context.Context, fn func(kv.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b := kv.NewBuffer(m, nil)
	if err := b.Run(fn); err != nil {
		return err
	}
	writes := b.Writes()
	if len(writes) == 0 {
		return nil
	}
	return m.commit(ctx, func() {
		m.version++
		for _, w := range writes {
			m.write(w)
		}
		m.wakers.Wake(writes)
	})
}

func (m *memory) write(w kv.Write) {
	i, found := slices.BinarySearch(m.keys, w.Key)
	switch {
	case w.Delete && found:
		m.keys = slices.Delete(m.keys, i, i+1)
		delete(m.values, w.Key)
	case !w.Delete:
		if !found {
			m.keys = slices.Insert(m.keys, i, w.Key)
		}
		m.values[w.Key] = w.Value
	}
}

// Scan implements kv.DB.
func (m *memory) Scan(ctx context.Context, prefix, from string, limit int, fn func(kv.Pair) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	pairs, err := m.Range(prefix, from, limit)
	if err != nil {
		return err
	}
	for _, p := range pairs {
		if err := fn(p); err == kv.ErrStop { //nolint:errorlint // it is a signal and never wrapped
			return nil
		} else if err != nil {
			return err
		}
	}
	return nil
}

// Notify implements kv.DB.
func (m *memory) Notify(ctx context.Context, prefix string) <-chan struct{} {
	return m.wakers.Notify(ctx, prefix)
}

// Close implements kv.DB.
func (m *memory) Close() error { return nil }
