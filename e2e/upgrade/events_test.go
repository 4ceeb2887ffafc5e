package upgrade_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/kv"
	"github.com/errand-bot/errand/state/kv/blob"
)

// retired are the fields of events that 403b8aa used for reports of jobs only. Reports are applied at once and never
// stored, so no database has them; only the database's invented events, which have every field set, do.
var retired = []string{"asleep", "detail", "hash", "insured", "vm"}

// invented reports whether an event was made for the database, with every field set.
func invented(e *state.Event) bool { return e != nil && strings.HasPrefix(e.ID, "all:") }

// TestStoredEventsReadWhole checks that no other field of an event that waits for a permission check is lost or changed.
func TestStoredEventsReadWhole(t *testing.T) {
	t.Parallel()
	db := open(t)
	codec, err := blob.New(state.Cloner())
	if err != nil {
		t.Fatal(err)
	}
	events, whole := 0, 0
	err = db.View(t.Context(), func(r kv.Reader) error {
		return db.Scan(t.Context(), "jobdata/", "", 0, func(p kv.Pair) error {
			var stored struct {
				Event map[string]any `json:"event"`
			}
			var read struct {
				Event *state.Event `json:"event"`
			}
			if err := codec.GetJSON(r, p.Key, &stored); err != nil || stored.Event == nil {
				return err
			}
			if err := codec.GetJSON(r, p.Key, &read); err != nil {
				return err
			}
			data, err := json.Marshal(read.Event)
			if err != nil {
				return err
			}
			var again map[string]any
			if err := json.Unmarshal(data, &again); err != nil {
				return err
			}
			if invented(read.Event) {
				whole++
				for _, name := range retired {
					delete(stored.Event, name)
				}
			}
			events++
			if d := cmp.Diff(stored.Event, again); d != "" {
				t.Errorf("the event of %s (-stored +read):\n%s", p.Key, d)
			}
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	if events < 30 || whole < 5 {
		t.Errorf("%d stored events, of which %d have every field set; there were more", events, whole)
	}
	if kinds := []state.EventKind{state.EventGone, state.EventSlept, state.EventReleased, state.EventDue, state.EventStale, state.EventNoApproval}; slices.ContainsFunc(kinds, state.EventKind.NeedsPermission) {
		t.Error("an event that used a retired field is stored while a permission is read")
	}
}
