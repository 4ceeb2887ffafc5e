package simgithub

import (
	"cmp"
	"net/http"
	"slices"
	"time"
)

// HookFault changes what happens to deliveries. The zero value of each condition matches everything.
type HookFault struct {
	Event  string `json:"event"`  // such as issue_comment
	Action string `json:"action"` // such as created
	Nth    int    `json:"nth"`    // start with the n-th match, counted from 1
	Count  int    `json:"count"`  // number of matches to change; 0: all

	Lose         bool `json:"lose"`          // never sent and in no log, as when GitHub itself loses an event
	Large        bool `json:"large"`         // as if the payload were over 25 MB: not sent either, as on GitHub
	Fail         bool `json:"fail"`          // not sent, but in the log as a failed delivery
	Copies       int  `json:"copies"`        // number of further copies with the same GUID, sent at the same time
	Hold         bool `json:"hold"`          // held until ReleaseHooks
	BadSignature bool `json:"bad_signature"` // signed with another secret and in no log, as if by a stranger

	seen int
}

// FaultHooks adds a rule about deliveries. The first rule that matches applies.
func (s *Sim) FaultHooks(f HookFault) {
	s.hooks.mu.Lock()
	defer s.hooks.mu.Unlock()
	s.hooks.rules = append(s.hooks.rules, &f)
}

// HoldHooks holds all further deliveries until ReleaseHooks.
func (s *Sim) HoldHooks() {
	s.hooks.mu.Lock()
	defer s.hooks.mu.Unlock()
	s.hooks.holding = true
}

// ReleaseHooks sends the held deliveries, in order or reversed, and ends HoldHooks.
func (s *Sim) ReleaseHooks(reversed bool) {
	q := s.hooks
	q.mu.Lock()
	defer q.mu.Unlock()
	if reversed {
		slices.Reverse(q.held)
	}
	q.queue = append(q.queue, q.held...)
	q.held, q.holding = nil, false
	q.signal()
}

// bent is a delivery to which the rules were applied.
type bent struct {
	*delivery
	hold bool
}

// bend applies the rules to a delivery. It needs the queue's lock.
func (q *hookQueue) bend(d *delivery) []bent {
	f := q.rule(d)
	if f == nil {
		return []bent{{delivery: d}}
	}
	switch {
	case f.Lose || f.Large:
		return nil
	case f.Fail:
		d.ReqHeader = hookHeader(d, q.sim.app.ID)
		d.DeliveredAt, d.StatusCode, d.Status = q.sim.cfg.Now().UTC(), http.StatusBadGateway, "Invalid HTTP Response: 502"
		q.log = append(q.log, d)
		return nil
	case f.BadSignature:
		d.Secret, d.Stranger = "not the secret", true
	}
	out := []bent{{delivery: d, hold: f.Hold}}
	for n := range f.Copies {
		c := *d
		c.ID = d.ID + int64(n+1)<<40
		out = append(out, bent{delivery: &c, hold: f.Hold})
	}
	return out
}

func (q *hookQueue) rule(d *delivery) *HookFault {
	for _, f := range q.rules {
		if cmp.Or(f.Event, d.Event) != d.Event || cmp.Or(f.Action, d.Action) != d.Action {
			continue
		}
		f.seen++
		first := max(f.Nth, 1)
		if f.seen >= first && (f.Count == 0 || f.seen < first+f.Count) {
			return f
		}
	}
	return nil
}

// Delivery is one attempt to deliver a webhook.
type Delivery struct {
	ID         int64
	GUID       string
	Event      string
	Action     string
	Status     string
	StatusCode int
	Redelivery bool
	Payload    []byte
	At         time.Time // when it was sent
}

// Deliveries returns all attempts so far, oldest first.
func (s *Sim) Deliveries() []Delivery {
	s.hooks.mu.Lock()
	defer s.hooks.mu.Unlock()
	out := make([]Delivery, 0, len(s.hooks.log))
	for _, d := range s.hooks.log {
		out = append(out, Delivery{
			ID: d.ID, GUID: d.GUID, Event: d.Event, Action: d.Action, Status: d.Status, StatusCode: d.StatusCode,
			Redelivery: d.Redelivery, At: d.DeliveredAt, Payload: slices.Clone(d.Payload),
		})
	}
	return out
}

// Redeliver sends a delivery again with its GUID, as the button on GitHub's page does. It returns false if there is no such id.
func (s *Sim) Redeliver(id int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hooks.redeliver(id)
}

// redeliver does the same. It needs the lock of the Sim.
func (q *hookQueue) redeliver(id int64) bool {
	d := q.find(id)
	if d == nil {
		return false
	}
	d.ID, d.Redelivery, d.URL, d.Secret = q.sim.newID(), true, q.sim.app.WebhookURL, q.sim.app.WebhookSecret
	q.enqueue(d)
	return true
}

// find returns a copy of a logged delivery, to be sent again.
func (q *hookQueue) find(id int64) *delivery {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, d := range q.log {
		if d.ID == id {
			c := *d
			return &c
		}
	}
	return nil
}
