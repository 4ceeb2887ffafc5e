package simhetzner

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud/schema"
)

// event is something scheduled: an action ends, a server powers off, a late request takes effect.
type event struct {
	at   time.Time
	work *work // required work of a Machine; nil for none
	fn   func(at time.Time, err error)
}

// work is a Machine operation in progress.
type work struct {
	done bool
	err  error
}

// schedule holds the events that have not happened yet.
type schedule []*event

// add schedules fn for a time. It is called under the lock, after the work has finished.
func (events *schedule) add(t time.Time, w *work, fn func(at time.Time, err error)) {
	*events = append(*events, &event{at: t, work: w, fn: fn})
}

// settle processes all due events in the order of time. Events that wait for a Machine are processed at the first
// settle after its work.
func (events *schedule) settle(now time.Time) {
	for {
		next := -1
		for i, e := range *events {
			if !e.at.After(now) && (e.work == nil || e.work.done) && (next < 0 || e.at.Before((*events)[next].at)) {
				next = i
			}
		}
		if next < 0 {
			return
		}
		e := (*events)[next]
		*events = slices.Delete(*events, next, next+1)
		var err error
		if e.work != nil {
			err = e.work.err
		}
		e.fn(e.at, err)
	}
}

// next returns the time of the next event; false if there is none.
func (events schedule) next() (time.Time, bool) {
	var next time.Time
	for _, e := range events {
		if next.IsZero() || e.at.Before(next) {
			next = e.at
		}
	}
	return next, !next.IsZero()
}

// startWork starts a Machine operation; nil without a Machine.
func (s *Sim) startWork(do func(ctx context.Context) error) *work {
	if s.cfg.Machines == nil || do == nil {
		return nil
	}
	w := &work{}
	s.work.Go(func() {
		ctx, cancel := context.WithTimeout(s.ctx, machineTimeout)
		defer cancel()
		err := do(ctx)
		s.mu.Lock()
		defer s.mu.Unlock()
		w.done, w.err = true, err
	})
	return w
}

// action is an asynchronous action of the API.
type action struct {
	id       int64
	command  string
	started  time.Time
	finished time.Time // zero while it runs
	due      time.Time // zero while it waits for another action
	failed   *schema.ActionError
	on       []schema.ActionResourceReference
	then     []func(at time.Time, failed bool)
}

func (a *action) about() (int64, string, time.Time, map[string]string) {
	return a.id, a.command, a.started, nil
}

func (a *action) running() bool { return a.finished.IsZero() }

// plan describes an action to start.
type plan struct {
	command string
	took    time.Duration
	work    *work
	after   *action // it starts when this one has ended, and fails with it
	server  *server // locked during the action
	on      []schema.ActionResourceReference
	// done applies the effect; failed states that there is none.
	done func(at time.Time, failed bool)
}

// startAction starts an action. A fault of the call applies to it.
func (s *Sim) startAction(c *call, p plan) *action {
	a := &action{id: s.nextID(), command: p.command, started: c.now, on: p.on}
	if p.server != nil {
		p.server.running++
		a.on = append([]schema.ActionResourceReference{{ID: p.server.id, Type: "server"}}, a.on...)
	}
	var code string
	if c.fault != nil {
		code = c.fault.ActionCode
		if c.fault.Slow > 0 {
			p.took = c.fault.Slow
		}
	}
	end := func(at time.Time, err error) {
		switch {
		case p.after != nil && p.after.failed != nil:
			a.failed = p.after.failed
		case code != "":
			a.failed = &schema.ActionError{Code: code, Message: "ordered by a fault"}
		case err != nil:
			a.failed = &schema.ActionError{Code: "action_failed", Message: err.Error()}
		}
		s.endAction(a, p, at)
	}
	begin := func(at time.Time) {
		a.due = at.Add(p.took)
		s.events.add(a.due, p.work, end)
	}
	if p.after == nil {
		begin(c.now)
	} else {
		p.after.then = append(p.after.then, func(at time.Time, failed bool) {
			if failed {
				end(at, nil)
				return
			}
			begin(at)
		})
	}
	s.actions[a.id] = a
	return a
}

func (s *Sim) endAction(a *action, p plan, at time.Time) {
	a.finished = at
	if p.server != nil {
		p.server.running--
	}
	if p.done != nil {
		p.done(at, a.failed != nil)
	}
	for _, next := range a.then {
		next(at, a.failed != nil)
	}
	a.then = nil
}

func (s *Sim) wireAction(a *action) any {
	w := schema.Action{ID: a.id, Command: a.command, Status: "running", Started: a.started.UTC(), Resources: a.on, Error: a.failed}
	if w.Resources == nil {
		w.Resources = []schema.ActionResourceReference{}
	}
	switch {
	case a.running():
		if total := a.due.Sub(a.started); total > 0 {
			w.Progress = int(min(99, 100*s.cfg.Now().Sub(a.started)/total))
		}
	case a.failed != nil:
		w.Status = "error"
	default:
		w.Status = "success"
	}
	if !a.running() {
		at := a.finished.UTC()
		w.Finished, w.Progress = &at, 100
	}
	return w
}

func (s *Sim) wireActions(list ...*action) []any {
	out := []any{}
	for _, a := range list {
		out = append(out, s.wireAction(a))
	}
	return out
}

func getAction(s *Sim, c *call) (answer, error) {
	a, err := pathObject(c, "Action", s.actions)
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusOK, map[string]any{"action": s.wireAction(a)}}, nil
}

// listActions serves GET /actions, which requires IDs and has no pages.
func listActions(s *Sim, c *call) (answer, error) {
	ids := c.query["id"]
	if len(ids) == 0 {
		return answer{}, newFieldError("id", "at least one is needed")
	}
	for _, id := range ids {
		if _, err := strconv.ParseInt(id, 10, 64); err != nil {
			return answer{}, newFieldError("id", "has to be a number")
		}
	}
	found := []*action{}
	for _, id := range ids {
		n, _ := strconv.ParseInt(id, 10, 64) // was checked above
		if a := s.actions[n]; a != nil && !slices.Contains(found, a) {
			found = append(found, a)
		}
	}
	return answer{http.StatusOK, map[string]any{"actions": s.wireActions(found...)}}, nil
}

// listServerActions serves the actions of all servers, or of the one in the path.
func listServerActions(s *Sim, c *call) (answer, error) {
	return s.filterActions(c, func(a *action) bool {
		return slices.ContainsFunc(a.on, func(r schema.ActionResourceReference) bool {
			return r.Type == "server" && (c.id == 0 || r.ID == c.id)
		}) && anyOf(c, "id", strconv.FormatInt(a.id, 10))
	})
}

func (s *Sim) filterActions(c *call, keep func(*action) bool) (answer, error) {
	status := func(a *action) string { return s.wireAction(a).(schema.Action).Status }
	return list(c, "actions", s.actions, func(a *action) bool { return keep(a) && anyOf(c, "status", status(a)) },
		s.wireAction)
}

// keptActions limits the stored ended actions, so that a simulated year stays small.
const keptActions = 1000

// actionSet holds actions by ID.
type actionSet map[int64]*action

// dropOldest drops the oldest ended actions beyond the limit.
func (all actionSet) dropOldest(lastID int64) {
	if len(all) < 2*keptActions {
		return
	}
	for id, a := range all {
		if !a.running() && id < lastID-keptActions {
			delete(all, id)
		}
	}
}
