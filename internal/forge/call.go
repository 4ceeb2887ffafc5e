package forge

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"
)

// Call is one HTTP request that was answered or that failed, for metrics.
type Call struct {
	Op           string // what it was for, without names: "create comment"
	Method       string
	Status       int // 0 when there was no answer
	Installation int64
	Took         time.Duration
	Limited      LimitKind // empty unless it met a limit
	API          string    // rest or graphql
	Left         int       // of the API's hourly limit, as the answer said; -1 if it did not
}

// callKind says what may be done with a request.
type callKind int

const (
	kindRead  callKind = iota // may be repeated
	kindWrite                 // has its effect once; waits its turn
	kindData                  // git objects: named by their content, so may be repeated; waits in a queue of its own
)

// call is one use of the forge, carried in the context down to the transport.
type call struct {
	op           string // with names, for errors: "comment on octo/app#3"
	name         string // without, for metrics
	kind         callKind
	installation int64
	priority     Priority
	now          func() time.Time
	renew        func() bool // gets a new token; nil for calls as the App
	regrant      func() bool // likewise, unless the one that was used is new
	sent         atomic.Bool // a write has left this process
}

type callKey struct{}

func (c *call) in(ctx context.Context) context.Context { return context.WithValue(ctx, callKey{}, c) }

// callOf returns the call that a request belongs to; a request from elsewhere is judged by its method.
func callOf(req *http.Request, now func() time.Time) *call {
	if c, ok := req.Context().Value(callKey{}).(*call); ok {
		return c
	}
	c := &call{op: req.Method + " " + req.URL.Path, name: "other", now: now}
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		c.kind, c.priority = kindWrite, PriorityAnswer
	}
	return c
}
