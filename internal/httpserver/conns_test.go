package httpserver

import (
	"fmt"
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
