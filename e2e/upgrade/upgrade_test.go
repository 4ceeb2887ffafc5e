package upgrade_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestOldDatabaseReadsAsBefore opens the database of 403b8aa with the current code, which migrates it, and compares the
// values that the store reads with those that 403b8aa itself read. Schema 2 moves nothing, so nothing may differ. A new
// field of a stored type must be omitted when empty (omitempty, omitzero); otherwise it appears here as a change of
// every old value.
func TestOldDatabaseReadsAsBefore(t *testing.T) {
	t.Parallel()
	var want reading
	decode(t, expand(t, "golden.json.zst"), &want)
	db := open(t)
	got := read(t, db)
	for id := range got.Jobs { // TestStoredEventsReadWhole compares these
		if got.invented[id] && want.Jobs[id] != nil {
			want.Jobs[id]["event"] = got.Jobs[id]["event"]
		}
	}
	same(t, want, got, read(t, db))
	if len(got.Tasks) < 100 || len(got.Jobs) < 100 || len(got.VMs) < 15 || len(got.Pending) < 6 || len(got.Poison) < 2 {
		t.Errorf("got %d tasks, %d jobs, %d VMs, %d pending and %d poison deliveries in the database, want more", len(got.Tasks), len(got.Jobs), len(got.VMs), len(got.Pending), len(got.Poison))
	}
}

// same compares the values that an earlier errand read from its database with those that the current code reads, now and when it opens
// the database again.
func same(t *testing.T, want, got, again reading) {
	t.Helper()
	for kind, pair := range map[string][2]map[string]map[string]string{"task": {want.Tasks, got.Tasks}, "job": {want.Jobs, got.Jobs}, "VM": {want.VMs, got.VMs}} {
		fields(t, kind, pair[0], pair[1])
	}
	if d := cmp.Diff(want, got, cmpopts.IgnoreFields(reading{}, "Tasks", "Jobs", "VMs", "invented")); d != "" {
		t.Errorf("the current code reads the database differently than the errand that wrote it (-then +now). Stored values keep their meaning, so a migration that changes one must be named here:\n%s", d)
	}
	if d := cmp.Diff(want, again, cmpopts.IgnoreFields(reading{}, "invented")); d != "" {
		t.Errorf("opening it a second time changed something (-then +now):\n%s", d)
	}
}

// fields compares the values read for objects of one kind, and reports the fields that differ, with the first object
// for each.
func fields(t *testing.T, kind string, want, got map[string]map[string]string) {
	t.Helper()
	differ := map[string][]string{}
	for id := range want {
		if got[id] == nil {
			t.Errorf("%s %s is missing", kind, id)
			continue
		}
		for _, m := range []map[string]string{want[id], got[id]} {
			for field := range m {
				if want[id][field] != got[id][field] && !slices.Contains(differ[field], id) {
					differ[field] = append(differ[field], id)
				}
			}
		}
	}
	for _, field := range slices.Sorted(maps.Keys(differ)) {
		first := slices.Min(differ[field])
		t.Errorf("%q of %d stored %ss is read differently than by the errand that wrote it: for %s it was %s and is now %s. Restore the old JSON names of fields, omit a new one when it is empty, or name the migration that changes it",
			field, len(differ[field]), kind, first, want[first][field], got[first][field])
	}
	for id := range got {
		if want[id] == nil {
			t.Errorf("%s %s was never stored", kind, id)
		}
	}
}
