package past_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestOldDatabaseReadsAsBefore opens the database of 403b8aa with today's code, which migrates it, and holds what the store
// reads against what 403b8aa itself read. Schema 2 moves nothing, so nothing may differ. A new field of a stored type has
// to be left out where it is empty; else it shows here, as a change of every old value.
func TestOldDatabaseReadsAsBefore(t *testing.T) {
	t.Parallel()
	var want reading
	decode(t, expand(t, "golden.json.zst"), &want)
	db := open(t)
	got := read(t, db)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("today's code reads the database of 403b8aa otherwise than 403b8aa did (-then +now). What was stored must keep its meaning, so a migration that changes it has to be named here:\n%s", d)
	}
	if d := cmp.Diff(want, read(t, db)); d != "" {
		t.Errorf("opening it a second time changed something (-then +now):\n%s", d)
	}
	if len(got.Tasks) < 100 || len(got.Jobs) < 100 || len(got.VMs) < 15 || len(got.Pending) < 6 || len(got.Poison) < 2 {
		t.Errorf("the database has %d tasks, %d jobs, %d VMs, %d pending and %d poison deliveries; it had more", len(got.Tasks), len(got.Jobs), len(got.VMs), len(got.Pending), len(got.Poison))
	}
}
