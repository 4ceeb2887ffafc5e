package upgrade_test

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/kv"
	"github.com/errand-bot/errand/state/store"
	"github.com/errand-bot/errand/state/vm"
)

// Keys of maps, and the parts of the store's keys that identify one object.
var (
	mapKey  = regexp.MustCompile(`\.(days|labels|args|ids|env|doubts|ended)\.[^.[]+`)
	numbers = regexp.MustCompile(`[0-9]+`)
)

// TestRowsOfTheStoreStay lists the store's keys with the kinds of their values, and the JSON names in rows without an
// exported type: those of the old database and some that the current store adds.
func TestRowsOfTheStoreStay(t *testing.T) {
	t.Parallel()
	db, ctx := open(t), t.Context()
	now := time.Date(2026, 3, 30, 12, 0, 0, 0, time.UTC)
	s, err := store.Open(ctx, db, store.Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	image := vm.Image{ID: "img-1", CreatedAt: now.Add(-time.Hour), MicroHour: 50, Currency: "EUR", Paid: time.Hour}
	gone := image
	gone.ID = "img-2"
	for _, images := range [][]vm.Image{{image, gone}, {image}} {
		if err := s.VMs.BookImages(ctx, images, true); err != nil {
			t.Fatal(err)
		}
	}
	reserved := store.Reservation{ID: "call-1", Run: "900-1-1", Task: state.TaskKey{Repo: 900, Issue: 1}, At: now, Provider: "anthropic", Model: "opus", Input: 5, Output: 5}
	if err := s.Reservations.Reserve(ctx, reserved); err != nil {
		t.Fatal(err)
	}
	paused := state.Pause{Repo: 900, Name: "acme/shop", By: "token", Reason: "new disk"}
	if _, err := s.Pauses.Set(ctx, paused, store.Action{ID: "pause-1", By: "token", Subject: "acme/shop", Command: "pause"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.PutDelivery(ctx, store.Delivery{GUID: "new-0001", Event: "issues", Payload: []byte("{}"), Received: now}); err != nil {
		t.Fatal(err)
	}
	server := vm.Intent{Name: "errand-new", Task: state.TaskKey{Repo: 900, Issue: 1}, Repo: 900, Owner: "900/1", Gen: 9, Provider: "hetzner", MicroHour: 5, Currency: "EUR", Paid: time.Hour}
	if _, err := s.VMs.Intend(ctx, server, vm.Caps{}); err != nil {
		t.Fatal(err)
	}
	for _, e := range []vm.Event{{Kind: vm.Made, ID: "1", CreatedAt: now}, {Kind: vm.End, EndReason: "done"}, {Kind: vm.Deleted}} {
		if _, _, err := s.VMs.Apply(ctx, server.Name, e); err != nil {
			t.Fatal(err)
		}
	}
	lines := map[string]bool{}
	err = db.Scan(ctx, "", "", 0, func(p kv.Pair) error {
		kind := kindOfKey(p.Key)
		lines[kind] = true
		if slices.Contains([]string{"task/", "vm/", "jobdata/", "part/payload/", "payload/", "due/inbox/"}, kind) {
			return nil // the types in stored, or values written by others
		}
		for _, path := range paths(t, p.Value) {
			lines[kind+" "+path] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "strings/rows.txt", slices.Sorted(maps.Keys(lines)), never)
}

// kindOfKey returns the beginning of a key.
func kindOfKey(key string) string {
	parts := strings.SplitAfterN(key, "/", 3)
	if slices.Contains([]string{"due/", "vmbill/", "part/", "meta/"}, parts[0]) {
		return parts[0] + parts[1]
	}
	return parts[0]
}

// paths returns the JSON paths of a stored value, or nil if it is not JSON.
func paths(t *testing.T, value []byte) []string {
	t.Helper()
	if len(value) > 0 && value[0] == 1 { // compressed
		dec, err := zstd.NewReader(nil)
		if err != nil {
			t.Fatal(err)
		}
		defer dec.Close()
		if value, err = dec.DecodeAll(value[1:], nil); err != nil {
			t.Fatal(err)
		}
	}
	var doc any
	if json.Unmarshal(value, &doc) != nil || len(value) > 0 && value[0] != '{' && value[0] != '[' {
		return nil
	}
	x := examples{}
	x.see("", doc, nil)
	var list []string
	for path := range x {
		list = append(list, numbers.ReplaceAllString(mapKey.ReplaceAllString(path, ".$1.*"), "N"))
	}
	return list
}
