package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/errand-bot/errand/state/kv"
	"github.com/errand-bot/errand/state/kv/blob"
)

func (s *testStore) putDelivery(t *testing.T, guid, payload string) bool {
	t.Helper()
	isNew, err := s.PutDelivery(t.Context(), Delivery{GUID: guid, Event: "issues", Payload: []byte(payload)})
	if err != nil {
		t.Fatal(err)
	}
	return isNew
}

// pending returns the GUIDs of pending deliveries.
func (s *testStore) pending(t *testing.T) string {
	t.Helper()
	list, err := s.PendingDeliveries(t.Context(), 100)
	if err != nil {
		t.Fatal(err)
	}
	var guids []string
	for _, d := range list {
		guids = append(guids, d.GUID)
	}
	return strings.Join(guids, " ")
}

func wantPending(t *testing.T, s *testStore, want string) {
	t.Helper()
	if got := s.pending(t); got != want {
		t.Errorf("got pending %q, want %q", got, want)
	}
}

func TestDeliveriesKeepTheirOrderAndPayload(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	payloads := map[string]string{
		"z-empty": "", "y-small": `{"action":"opened"}`, "x-text": strings.Repeat("some text ", 5000),
		"w-noise": noise(100 << 10), "v-parts": noise(900 << 10), "u-ahead": noise(3 << 20),
		"t-marked": "\x01not zstd", "s-marked": "\x029",
	}
	order := []string{"z-empty", "y-small", "x-text", "w-noise", "v-parts", "u-ahead", "t-marked", "s-marked"}
	for _, guid := range order {
		if !s.putDelivery(t, guid, payloads[guid]) {
			t.Errorf("%s: got isNew false, want true", guid)
		}
		s.advance(time.Millisecond)
	}
	s.reopen(t)
	wantPending(t, s, strings.Join(order, " "))
	list, err := s.PendingDeliveries(t.Context(), 100)
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range list {
		if string(d.Payload) != payloads[d.GUID] || d.Event != "issues" || !d.Received.Equal(testStart.Add(time.Duration(i)*time.Millisecond)) {
			t.Errorf("%s: got %d bytes, event %s, received %v", d.GUID, len(d.Payload), d.Event, d.Received)
		}
	}
	if two, err := s.PendingDeliveries(t.Context(), 2); err != nil || len(two) != 2 {
		t.Errorf("got %d deliveries with limit 2, error %v", len(two), err)
	}
	for _, guid := range order {
		if err := s.SpendDelivery(t.Context(), guid); err != nil {
			t.Error(err)
		}
		s.wantSound(t) // nothing of the payload is left behind
	}
	wantPending(t, s, "")
}

// Every delivery is put five times concurrently, and again after it was applied.
func TestDuplicateDeliveries(t *testing.T) {
	t.Parallel()
	for _, size := range []int{100, 2 << 20} {
		s := newTestStore(t)
		var fresh atomic.Int32
		var group sync.WaitGroup
		for range 5 {
			group.Go(func() {
				if s.putDelivery(t, "guid", noise(size)) {
					fresh.Add(1)
				}
			})
		}
		group.Wait()
		if fresh.Load() != 1 {
			t.Errorf("got %d new deliveries of five, want 1", fresh.Load())
		}
		wantPending(t, s, "guid")

		// Five at once apply it: one does.
		var applied, spent atomic.Int32
		for range 5 {
			group.Go(func() {
				_, err := s.Apply(context.Background(), spelled(task1, "save", "work/a"), Ack{Delivery: "guid"})
				switch {
				case err == nil:
					applied.Add(1)
				case errors.Is(err, ErrSpent):
					spent.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		group.Wait()
		if applied.Load() != 1 || spent.Load() != 4 {
			t.Errorf("got %d applied and %d refused, want 1 applied", applied.Load(), spent.Load())
		}
		if s.putDelivery(t, "guid", noise(size)) {
			t.Error("got a new delivery despite the tombstone, want a known one")
		}
		wantPending(t, s, "")
		if task, err := s.Task(t.Context(), task1); err != nil || task.Version != 1 {
			t.Errorf("got task version %d, error %v", task.Version, err)
		}
	}
}

func TestDeliveryIsSpentOnlyWithItsEvent(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	s.putDelivery(t, "guid", "{}")
	_, err := s.Apply(t.Context(), spelled(task1, "body=1500000"), Ack{Delivery: "guid"})
	wantIs(t, "an event that cannot be stored", err, kv.ErrTooLarge)
	wantPending(t, s, "guid")
	s.mustApply(t, spelled(task1, ""), Ack{Delivery: "guid"})
	wantPending(t, s, "")
	wantIs(t, "spend again", s.SpendDelivery(t.Context(), "guid"), ErrSpent)
}

func TestPoison(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	s.putDelivery(t, "bad", "{}")
	s.advance(time.Second)
	s.putDelivery(t, "good", "{}")
	for i := 1; i <= MaxDeliveryFailures; i++ {
		wantPending(t, s, "bad good")
		n, err := s.FailDelivery(t.Context(), "bad", fmt.Errorf("boom %d", i))
		if n != i || err != nil {
			t.Errorf("failure %d: got %d, %v", i, n, err)
		}
	}
	wantPending(t, s, "good")
	list, err := s.PoisonDeliveries(t.Context(), 10)
	if err != nil || len(list) != 1 || list[0].LastError != "boom 5" || !list[0].Tried.Equal(s.time()) {
		t.Errorf("got set aside %+v, error %v", list, err)
	}
	if s.putDelivery(t, "bad", "{}") {
		t.Error("got a delivery that was set aside as new, want it known")
	}
	s.wantSound(t)
	s.mustApply(t, spelled(task1, "save"), Ack{Delivery: "bad"})
	_, err = s.FailDelivery(t.Context(), "bad", errors.New("late"))
	wantIs(t, "fail a spent one", err, ErrSpent)
}

func TestBadDeliveries(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	for _, guid := range []string{"", "a/b", "a b", strings.Repeat("g", 101), "ä", "\x00"} {
		_, err := s.PutDelivery(t.Context(), Delivery{GUID: guid})
		wantIs(t, fmt.Sprintf("GUID %.10q", guid), err, ErrBadDelivery)
	}
	_, err := s.PutDelivery(t.Context(), Delivery{GUID: "huge", Payload: make([]byte, MaxPayloadBytes+1)})
	wantIs(t, "too large a payload", err, ErrBadDelivery)
}

func TestLargestDelivery(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	payload := noise(MaxPayloadBytes)
	s.putDelivery(t, "largest", payload)
	list, err := s.PendingDeliveries(t.Context(), 1)
	if err != nil || len(list) != 1 || string(list[0].Payload) != payload {
		t.Fatalf("got another payload than the stored one (error %v)", err)
	}
	s.mustApply(t, spelled(task1, "save", "work/a", "status/s"), Ack{Delivery: "largest"})
}

func TestPruneTombstones(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	const n = 130
	for i := range n {
		guid := fmt.Sprintf("old-%d", i)
		s.putDelivery(t, guid, "{}")
		if err := s.SpendDelivery(t.Context(), guid); err != nil {
			t.Fatal(err)
		}
	}
	s.advance(time.Hour)
	s.putDelivery(t, "new", "{}")
	s.putDelivery(t, "waiting", "{}")
	if err := s.SpendDelivery(t.Context(), "new"); err != nil {
		t.Fatal(err)
	}
	if got, err := s.PruneTombstones(t.Context(), s.time()); got != n || err != nil {
		t.Errorf("got %d pruned, error %v; want %d", got, err, n)
	}
	for guid, want := range map[string]bool{"old-0": false, "old-129": false, "new": true, "waiting": true} {
		if got, err := s.HasDelivery(t.Context(), guid); got != want || err != nil {
			t.Errorf("%s: got known %v, error %v; want %v", guid, got, err, want)
		}
	}
}

// Parts are left behind as by a crash, and the store is opened again.
func TestLooseParts(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	if err := s.putPartsAhead(t.Context(), prePayload+"lost", [][]byte{{1}, {2}, {3}}); err != nil {
		t.Fatal(err)
	}
	s.putDelivery(t, "kept", noise(2<<20))
	problems, err := s.Check(t.Context())
	if err != nil || len(problems) != 3 {
		t.Errorf("got problems before %q, error %v; want the three loose parts", problems, err)
	}
	s.reopen(t)
	s.wantSound(t)
	if list, err := s.PendingDeliveries(t.Context(), 1); err != nil || string(list[0].Payload) != noise(2<<20) {
		t.Errorf("got a damaged complete delivery: %v", err)
	}
}

// storeAsSchema1 puts a delivery as errand did when payloads were stored outside of the inbox.
func (s *testStore) storeAsSchema1(t *testing.T, guid, payload string) {
	t.Helper()
	row := deliveryRow{State: deliveryPending, Event: "issues", Received: s.time().UTC()}
	err := s.db.Update(t.Context(), func(tx kv.Tx) error {
		return errors.Join(blob.Put(tx, prePayload+guid, s.codec.Compress([]byte(payload))), putRow(tx, guid, row), tx.Put(timeKey(preInbox, row.Received, guid), nil))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Wherever a payload is stored, it is there until the delivery is spent, and then completely removed.
func TestPayloadPlaces(t *testing.T) {
	t.Parallel()
	largest := noise(inlineBytes - 200) // it is packed as it is, with a head
	for name, c := range map[string]struct {
		payload string
		old     bool
		inline  bool
	}{
		"empty":                   {payload: ""},
		"small":                   {payload: "{}", inline: true},
		"compressed":              {payload: strings.Repeat("some text ", 5000), inline: true},
		"as large as fits a row":  {payload: largest, inline: true},
		"too large for a row":     {payload: noise(inlineBytes + 1)},
		"in parts":                {payload: noise(900 << 10)},
		"of schema 1, empty":      {payload: "", old: true},
		"of schema 1, small":      {payload: "{}", old: true},
		"of schema 1, compressed": {payload: strings.Repeat("some text ", 5000), old: true},
		"of schema 1, in parts":   {payload: noise(900 << 10), old: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTestStore(t)
			if c.old {
				s.storeAsSchema1(t, "g", c.payload)
			} else if !s.putDelivery(t, "g", c.payload) {
				t.Error("got isNew false, want true")
			}
			wantPayload := func(when string) {
				t.Helper()
				list, err := s.PendingDeliveries(t.Context(), 10)
				if err != nil || len(list) != 1 || string(list[0].Payload) != c.payload {
					t.Errorf("%s: listed are %d deliveries, error %v", when, len(list), err)
				}
				s.wantSound(t)
			}
			wantPayload("stored")
			if s.putDelivery(t, "g", "another") {
				t.Error("got a second delivery with its GUID as new, want it known")
			}
			if got := s.has(t, prePayload+"g"); got == c.inline {
				t.Errorf("payload under its own key: got error %v", got)
			}
			s.reopen(t)
			wantPayload("opened again")
			for range MaxDeliveryFailures {
				wantPayload("failed")
				if _, err := s.FailDelivery(t.Context(), "g", errors.New("boom")); err != nil {
					t.Fatal(err)
				}
			}
			s.wantSound(t)
			if !s.has(t, prePayload+"g") {
				t.Error("the payload of a poisoned delivery is not stored under its own key")
			}
			s.mustApply(t, spelled(task1, "save"), Ack{Delivery: "g"})
			wantPending(t, s, "")
			s.wantSound(t)
		})
		t.Run(name+", spent at once", func(t *testing.T) {
			t.Parallel()
			s := newTestStore(t)
			if c.old {
				s.storeAsSchema1(t, "g", c.payload)
			} else {
				s.putDelivery(t, "g", c.payload)
			}
			if err := s.SpendDelivery(t.Context(), "g"); err != nil {
				t.Fatal(err)
			}
			s.wantSound(t)
		})
	}
}

// has reports whether a key exists.
func (s *testStore) has(t *testing.T, key string) (found bool) {
	t.Helper()
	err := s.db.View(t.Context(), func(r kv.Reader) error {
		_, err := r.Get(key)
		found = err == nil
		if errors.Is(err, kv.ErrNotFound) {
			return nil
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// A store of schema 1 with pending deliveries can be opened. A version of errand that knows only schema 1 must not open
// it any more, because it would not find the payloads of new deliveries.
func TestSchema1Opens(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	s.storeAsSchema1(t, "old", "{}")
	if err := s.db.Update(t.Context(), func(tx kv.Tx) error { return tx.Put(keySchema, []byte("1")) }); err != nil {
		t.Fatal(err)
	}
	s.reopen(t)
	s.advance(time.Second)
	s.putDelivery(t, "new", "{}")
	wantPending(t, s, "old new")
	if version, err := Schema(t.Context(), s.db); version < 2 || err != nil {
		t.Errorf("schema %d, error %v; want at least 2", version, err)
	}
}
