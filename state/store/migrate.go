package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/errand-bot/errand/state/kv"
)

// migration upgrades a store from the previous schema version. After an interruption at any point it is run again from
// the start, so each of its updates must be safe to repeat.
type migration struct {
	doc string
	run func(context.Context, *Store) error
}

// migrations returns all migrations; the n-th upgrades the store to version n. A released migration is never changed or
// removed. Before you add one, store a database of the present version: see e2e/upgrade/testdata/schema-2/README.md.
func migrations() []migration {
	return []migration{
		{doc: "the first schema: an empty store has it already", run: func(context.Context, *Store) error { return nil }},
		// Nothing is moved. The version number prevents an older errand, which would not find these payloads, from
		// opening the store.
		{doc: "payloads of deliveries that wait lie in the inbox", run: func(context.Context, *Store) error { return nil }},
	}
}

// migrate runs the missing migrations and records each version that is reached.
func (s *Store) migrate(ctx context.Context, list []migration) error {
	version, err := Schema(ctx, s.db)
	if err != nil {
		return err
	}
	if version > len(list) {
		return fmt.Errorf("%w: its schema is %d, this errand knows up to %d; run the errand that wrote it, or a newer one",
			ErrNewerSchema, version, len(list))
	}
	for n := version; n < len(list); n++ {
		if err := list[n].run(ctx, s); err != nil {
			return fmt.Errorf("migrate to schema %d (%s): %w", n+1, list[n].doc, err)
		}
		err := kv.Update(ctx, s.db, "migrate", func(tx kv.Tx) error { return tx.Put(keySchema, strconv.AppendInt(nil, int64(n+1), 10)) })
		if err != nil {
			return fmt.Errorf("record schema %d: %w", n+1, err)
		}
	}
	return nil
}

// Schema returns the schema's version of a store that Open has not migrated, 0 for a new one.
func Schema(ctx context.Context, db kv.DB) (int, error) {
	version := 0
	err := db.View(ctx, func(r kv.Reader) error {
		text, err := r.Get(keySchema)
		if errors.Is(err, kv.ErrNotFound) {
			return nil
		}
		if err == nil {
			version, err = strconv.Atoi(string(text))
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("read schema version: %w", err)
	}
	return version, nil
}
