package upgrade_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/store"
)

// later returns the folders with databases of the schemas after that of 403b8aa.
func later(t *testing.T) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join("testdata", "schema-*"))
	if err != nil || len(list) == 0 {
		t.Fatalf("no databases of later schemas: %v", err)
	}
	return list
}

// restoreFrom writes the database of a folder to a new directory, and returns its path.
func restoreFrom(t *testing.T, folder string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "errand.db")
	if err := os.WriteFile(path, expandFile(t, filepath.Join(folder, "errand.db.zst")), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestEverySchemaHasADatabase: whoever adds a migration first stores a database of the schema that it leaves, while there is code that
// writes one.
func TestEverySchemaHasADatabase(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	empty := openFile(t, filepath.Join(t.TempDir(), "errand.db"))
	if _, err := store.Open(ctx, empty, store.Options{}); err != nil {
		t.Fatal(err)
	}
	current, err := store.Schema(ctx, empty)
	if err != nil {
		t.Fatal(err)
	}
	paths, stored := []string{restore(t)}, map[int]bool{}
	for _, folder := range later(t) {
		paths = append(paths, restoreFrom(t, folder))
	}
	for _, path := range paths {
		version, err := store.Schema(ctx, openFile(t, path))
		if err != nil {
			t.Fatal(err)
		}
		stored[version] = true
	}
	for n := 1; n < current; n++ {
		if !stored[n] {
			t.Errorf("there is no database of schema %d, so nothing shows that it can be migrated to schema %d: make one with the last commit of that schema, as testdata/schema-2/README.md says", n, current)
		}
	}
}

// TestLaterDatabasesReadAsBefore opens the databases of later schemas with the current code, which migrates them, and compares what it reads
// with what was read when they were stored. -update stores that for a new database only.
func TestLaterDatabasesReadAsBefore(t *testing.T) {
	t.Parallel()
	for _, folder := range later(t) {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			t.Parallel()
			db := openFile(t, restoreFrom(t, folder))
			got, golden := read(t, db), filepath.Join(folder, "golden.json")
			data, err := os.ReadFile(golden)
			if errors.Is(err, fs.ErrNotExist) && *update {
				if data, err = json.MarshalIndent(got, "", "\t"); err == nil {
					err = os.WriteFile(golden, append(data, '\n'), 0o600)
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			var want reading
			decode(t, data, &want)
			same(t, want, got, read(t, db))
			for _, phase := range []state.Phase{state.PhasePROpen, state.PhaseAwaitingPreliminaryApproval, state.PhaseAwaitingPlanApproval, state.PhaseCancelled} {
				if got.Phases[phase] == 0 {
					t.Errorf("no task is in the phase %s: %v", phase, got.Phases)
				}
			}
			if len(got.VMs) == 0 || len(got.Spent) == 0 {
				t.Errorf("got %d VMs and %d applied deliveries, want some", len(got.VMs), len(got.Spent))
			}
		})
	}
}
