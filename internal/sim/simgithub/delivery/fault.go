package delivery

import (
	"cmp"
	"net/http"
	"slices"
)

// A Fault changes the handling of deliveries. The zero value of each condition matches everything.
type Fault struct {
	Event  string `json:"event"`  // such as issue_comment
	Action string `json:"action"` // such as created
	Nth    int    `json:"nth"`    // start with the n-th match, counted from 1
	Count  int    `json:"count"`  // number of matches to change; 0: all

	Lose         bool `json:"lose"`          // never sent and in no log, as when GitHub itself loses an event
	Large        bool `json:"large"`         // as if the payload were over 25 MB: not sent either, as on GitHub
	Fail         bool `json:"fail"`          // not sent, but in the log as a failed delivery
	Copies       int  `json:"copies"`        // number of further copies with the same GUID, sent at the same time
	Hold         bool `json:"hold"`          // held until Release
	BadSignature bool `json:"bad_signature"` // signed with another secret and in no log, as if by a stranger

	seen int
}

// Fault adds a rule about deliveries. The first rule that matches applies.
func (q *Queue) Fault(f Fault) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.rules = append(q.rules, &f)
}

// ClearFaults removes all rules. Held deliveries stay held.
func (q *Queue) ClearFaults() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.rules = nil
}

// Hold holds all further deliveries until Release.
func (q *Queue) Hold() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.holding = true
}

// Release sends the held deliveries, in order or reversed, and ends Hold.
func (q *Queue) Release(reversed bool) {
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
	*Delivery
	hold bool
}

// bend applies the rules to a delivery. It needs the queue's lock.
func (q *Queue) bend(d *Delivery) []bent {
	f := q.rule(d)
	if f == nil {
		return []bent{{Delivery: d}}
	}
	switch {
	case f.Lose || f.Large:
		return nil
	case f.Fail:
		d.ReqHeader = header(d, q.cfg.AppID)
		d.DeliveredAt, d.StatusCode, d.Status = q.cfg.Now().UTC(), http.StatusBadGateway, "Invalid HTTP Response: 502"
		q.log = append(q.log, d)
		return nil
	case f.BadSignature:
		d.Secret, d.Foreign = "not the secret", true
	}
	out := []bent{{Delivery: d, hold: f.Hold}}
	for n := range f.Copies {
		c := *d
		c.ID = d.ID + int64(n+1)<<40
		out = append(out, bent{Delivery: &c, hold: f.Hold})
	}
	return out
}

func (q *Queue) rule(d *Delivery) *Fault {
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
