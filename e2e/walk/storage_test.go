package walk

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/errand-bot/errand/handlers"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/state/store"
)

// storage checks the processing of accepted webhooks: each is applied once, and marked as spent by the transaction that
// applies its last event.
type storage struct {
	w        *world
	taken    map[string]store.Delivery // answered 200, or fetched by errand
	applied  map[string]bool           // its last event
	nothing  map[string]bool           // spent without an event
	vague    map[string]bool           // errand died while storing it
	fetching *fetching
}

// fetching is a sweep for lost webhooks.
type fetching struct {
	nested int
	listed []string
	tried  map[string]bool
}

func newStorage(w *world) *storage {
	return &storage{w: w, taken: map[string]store.Delivery{}, applied: map[string]bool{}, nothing: map[string]bool{}, vague: map[string]bool{}}
}

// PutDelivery records an accepted webhook. A redelivery by GitHub or a sweep must be recognized.
func (j journal) PutDelivery(ctx context.Context, d store.Delivery) (bool, error) {
	isNew, err := j.Store.PutDelivery(ctx, d)
	s := j.w.storage
	if _, known := s.taken[d.GUID]; err == nil && isNew && known {
		j.w.complain("storage: the webhook %s (%s) was accepted before, but counts as new", d.GUID, d.Event)
	}
	if err == nil {
		d.Payload = slices.Clone(d.Payload)
		s.taken[d.GUID] = d
	}
	return isNew, err
}

// SpendDelivery checks that a webhook spent without an event has no effect.
func (j journal) SpendDelivery(ctx context.Context, guid string) error {
	s := j.w.storage
	d := s.taken[guid]
	if events, _, err := mapper(j.w).Map(ctx, d.Event, d.GUID, d.Payload); err == nil && len(events) > 0 {
		j.w.complain("storage: the webhook %s (%s) is spent, but its event (%s) is not applied in the same transaction", guid, d.Event, events[0].Kind())
	}
	err := j.Store.SpendDelivery(ctx, guid)
	s.settled(guid, s.nothing, err)
	return err
}

// spent records the transaction that applied a webhook's last event.
func (s *storage) spent(guid string, err error) {
	if guid == "" {
		return
	}
	if (err == nil || errors.Is(err, store.ErrSpent)) && s.applied[guid] {
		s.w.complain("storage: the webhook %s (%s) is applied twice", guid, s.taken[guid].Event)
	}
	s.settled(guid, s.applied, err)
}

func (s *storage) settled(guid string, as map[string]bool, err error) {
	switch {
	case err == nil:
		as[guid] = true
	case !errors.Is(err, errFull): // errand may have died after the commit
		s.vague[guid] = true
	}
}

func mapper(w *world) *handlers.Mapper {
	return handlers.NewMapper(handlers.Config{Slug: slug, BotID: botID, Assignee: assignee, Label: label}, w.store)
}

// all checks that each accepted webhook was applied, or has no effect.
func (s *storage) all() {
	pending, err := s.w.store.PendingDeliveries(context.Background(), 10)
	if err != nil || len(pending) > 0 {
		s.w.fatalf("storage: %d webhooks are still to be applied at the end: %v", len(pending), err)
	}
	for _, guid := range sortedKeys(s.taken) {
		if !s.applied[guid] && !s.nothing[guid] && !s.vague[guid] {
			s.w.fatalf("storage: the webhook %s (%s) was accepted, but never applied", guid, s.taken[guid].Event)
		}
	}
}

// fetches begins a sweep for webhooks, which ends when the returned function is called. A webhook that cannot be
// fetched must not prevent fetching the others.
func (s *storage) fetches() (end func()) {
	f, e := &fetching{nested: s.w.nested, tried: map[string]bool{}}, s.w.errand
	s.fetching = f
	return func() {
		s.fetching = nil
		if s.w.errand != e || !e.up() {
			return
		}
		for _, guid := range f.listed {
			if known, err := s.w.store.HasDelivery(context.Background(), guid); err != nil || !known && !f.tried[guid] {
				s.w.fatalf("storage: a sweep got the lost webhook %s in a list, but did not fetch it: %v", guid, err)
			}
		}
	}
}

func (s *storage) under() *fetching {
	if s.fetching == nil || s.fetching.nested != s.w.nested {
		return &fetching{tried: map[string]bool{}}
	}
	return s.fetching
}

// lists and asks record the webhooks that a sweep gets in a list, and those that it fetches.
func (s *storage) lists(list []forge.Delivery) {
	f := s.under()
	for _, d := range list {
		f.listed = append(f.listed, d.GUID)
	}
}

func (s *storage) asks(guid string) { s.under().tried[guid] = true }

// commit is called by every update of the store.
func (w *world) commit(ctx context.Context, effect func()) error {
	if w.full() {
		return errFull
	}
	for i := range w.armed {
		t := w.armed[i]
		if !strings.HasPrefix(t.kind, "die") || t.after > 0 {
			continue
		}
		w.armed = slices.Delete(w.armed, i, i+1)
		w.hit("trouble " + t.kind)
		w.note("trouble: %s a commit", t.kind)
		if t.kind == "die after" {
			effect()
		}
		w.die()
		return context.Canceled
	}
	effect()
	return nil
}

// full reports whether the store cannot write because the disk is full. The walk's own bookings, in place of the
// gateway, are written nevertheless.
func (w *world) full() bool {
	for i := range w.armed {
		t := &w.armed[i]
		if t.kind != "store refuses" || w.itself || t.op != "" && t.op != string(w.applying) {
			continue
		}
		if t.after--; t.after >= 0 {
			continue
		}
		w.armed = slices.Delete(w.armed, i, i+1)
		w.hit("trouble store refuses")
		w.note("trouble: the store refuses a commit")
		w.troubled()
		return true
	}
	return false
}
