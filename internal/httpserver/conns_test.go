package httpserver

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fakeConn is a connection from an address that notes its end.
type fakeConn struct {
	net.Conn
	from   string
	closed *[]string
}

func (c *fakeConn) RemoteAddr() net.Addr {
	a, err := net.ResolveTCPAddr("tcp", c.from)
	if err != nil {
		panic(err)
	}
	return a
}

func (c *fakeConn) Close() error {
	*c.closed = append(*c.closed, c.from)
	return nil
}

func TestTooManyConnections(t *testing.T) {
	t.Parallel()
	const one, two, six = "192.0.2.1", "192.0.2.2", "[2001:db8::%d]"
	for name, c := range map[string]struct {
		// done are connections and what happens to them, in order: ADDRESS:PORT has a new one, and a word after it
		// another state.
		done   string
		closed []string
	}{
		"fewer than there may be":         {one + ":1 " + two + ":1 " + two + ":2", nil},
		"one address: the oldest":         {one + ":1 " + one + ":2 " + one + ":3 " + one + ":4", []string{one + ":1"}},
		"the one that has most pays":      {two + ":1 " + one + ":1 " + one + ":2 " + one + ":3", []string{one + ":1"}},
		"also when another one comes":     {one + ":1 " + one + ":2 " + one + ":3 " + two + ":1", []string{one + ":1"}},
		"a newer request is younger":      {one + ":1 " + one + ":2 " + one + ":3 " + one + ":1,active " + one + ":4", []string{one + ":2"}},
		"what has ended does not count":   {one + ":1 " + one + ":2 " + one + ":3 " + one + ":1,closed " + one + ":4", nil},
		"what was closed changes nothing": {one + ":1 " + one + ":2 " + one + ":3 " + one + ":4 " + one + ":1,idle " + one + ":1,closed", []string{one + ":1"}},
		"IPv6 counts by its /64": {
			two + ":1 " + fmt.Sprintf(six, 1) + ":1 " + fmt.Sprintf(six, 2) + ":1 " + two + ":2 " + fmt.Sprintf(six, 3) + ":1",
			[]string{two + ":1", fmt.Sprintf(six, 1) + ":1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var closed []string
			all := map[string]*fakeConn{}
			bound := newConns(3)
			states := map[string]http.ConnState{"": http.StateNew, "active": http.StateActive, "idle": http.StateIdle, "closed": http.StateClosed}
			for _, step := range strings.Fields(c.done) {
				from, state, _ := strings.Cut(step, ",")
				if all[from] == nil {
					all[from] = &fakeConn{from: from, closed: &closed}
				}
				bound.changed(all[from], states[state])
			}
			if diff := cmp.Diff(c.closed, closed); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestIdle: a connection is not idle while it has a request, nor, as long as heads are waited for, before its first one and while a head
// comes.
func TestIdle(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	t.Cleanup(func() { _, _ = ours.Close(), theirs.Close() })
	nc := &headConn{Conn: ours}
	c := newConns(10)
	change := func(s http.ConnState) {
		nextHead(nc, s)
		c.changed(nc, s)
	}
	part := func() {
		go func() { _, _ = theirs.Write([]byte("P")) }()
		if n, err := nc.Read(make([]byte, 10)); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	for _, tt := range []struct {
		what        string
		do          func()
		idle, later bool // while heads are waited for, and after that
		kept        bool // idle connections are kept for a moment
	}{
		{"new", func() { change(http.StateNew) }, false, true, false},
		{"a head comes", part, false, true, false},
		{"a request", func() { change(http.StateActive) }, false, false, false},
		{"idle", func() { change(http.StateIdle) }, true, true, true},
		{"another head comes", part, false, true, true},
		{"another request", func() { change(http.StateActive) }, false, false, false},
		{"closed", func() { change(http.StateClosed) }, true, true, false},
	} {
		before, _ := c.idle(true, false)
		tt.do()
		if before != nil && tt.what != "a head comes" {
			<-before // it was told
		}
		_, idle := c.idle(true, false)
		_, later := c.idle(false, false)
		if idle != tt.idle || later != tt.later {
			t.Errorf("%s: got idle %t and %t, want %t and %t", tt.what, idle, later, tt.idle, tt.later)
		}
		if _, gone := c.idle(false, true); gone != (tt.later && !tt.kept) {
			t.Errorf("%s, while idle connections are kept: got idle %t", tt.what, gone)
		}
	}
}

// TestStuckConnectionIsAborted: a connection of TLS whose client does not read cannot be closed in an orderly way. It holds up neither the
// connections that follow nor the end.
func TestStuckConnectionIsAborted(t *testing.T) {
	t.Parallel()
	c := newConns(1)
	pipe := func() (net.Conn, net.Conn) {
		ours, theirs := net.Pipe()
		t.Cleanup(func() { _, _ = ours.Close(), theirs.Close() })
		return &headConn{Conn: stuck{ours}}, theirs
	}
	first, theirs := pipe()
	second, others := pipe()
	c.changed(first, http.StateNew)
	c.changed(second, http.StateNew)
	if _, err := theirs.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the first connection: got %v, want it closed", err)
	}
	c.abortAll()
	if _, err := others.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the second connection at the end: got %v, want it closed", err)
	}
}

// stuck is a connection like one of TLS, whose Close never returns.
type stuck struct{ net.Conn }

func (s stuck) NetConn() net.Conn { return s.Conn }
func (s stuck) Close() error      { select {} }
