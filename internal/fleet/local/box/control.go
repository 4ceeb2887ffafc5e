package box

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"
)

// controlTimeout limits one exchange on the control socket, except for the wait for a sandbox's end.
const controlTimeout = 5 * time.Second

// request and Status are the control protocol: one JSON value each way.
type request struct {
	Do     string `json:"do"` // "status" or "end"
	Reason string `json:"reason,omitempty"`
	Detail string `json:"detail,omitempty"`
}

// Status is a supervisor's response.
type Status struct {
	// Ready is true once the SSH server in the sandbox serves.
	Ready bool `json:"ready"`
	// Ended is true in the response to End.
	Ended bool `json:"ended,omitempty"`
}

// endRequest is one call of Stop.
type endRequest struct {
	reason, detail string
	over           chan struct{} // closed when the sandbox has ended
	notified       chan struct{} // closed when the caller has been notified
}

// notifyCaller notifies the caller before the supervisor exits. It may be called on nil.
func (r *endRequest) notifyCaller() {
	if r == nil {
		return
	}
	close(r.over)
	patience := time.NewTimer(time.Second)
	defer patience.Stop()
	select {
	case <-r.notified:
	case <-patience.C:
	}
}

// control serves the control socket. It ends when its listener is closed.
type control struct {
	ln      net.Listener
	contact chan<- byte
	end     chan<- *endRequest
	done    <-chan struct{}
	ready   atomic.Bool
}

func (c *control) serve() {
	for {
		conn, err := c.ln.Accept()
		if err != nil {
			return
		}
		go c.answer(conn)
	}
}

func (c *control) answer(conn net.Conn) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(controlTimeout))
	var req request
	if err := json.NewDecoder(io.LimitReader(conn, 64<<10)).Decode(&req); err != nil {
		return
	}
	select {
	case c.contact <- beatContact:
	case <-c.done:
		return
	}
	status := Status{Ready: c.ready.Load()}
	if req.Do == "end" {
		_ = conn.SetDeadline(time.Time{}) // limited by the process, which is ending
		end := &endRequest{reason: req.Reason, detail: req.Detail, over: make(chan struct{}), notified: make(chan struct{})}
		defer close(end.notified)
		select {
		case c.end <- end:
			<-end.over
			status.Ended = true
		case <-c.done:
			return
		}
	}
	_ = json.NewEncoder(conn).Encode(status)
}

// Ask requests the status from a sandbox's supervisor. This counts as contact.
func Ask(ctx context.Context, rec Record) (Status, error) {
	ctx, cancel := context.WithTimeout(ctx, controlTimeout)
	defer cancel()
	return sendRequest(ctx, rec.ControlSocket, request{Do: "status"})
}

// Stop asks the supervisor to end its sandbox. It returns when every process of the sandbox is dead, as far as the kind
// allows, and the reason is on disk.
func Stop(ctx context.Context, rec Record, reason, detail string) error {
	status, err := sendRequest(ctx, rec.ControlSocket, request{Do: "end", Reason: reason, Detail: detail})
	if err != nil {
		return err
	}
	if !status.Ended {
		return fmt.Errorf("box %s: supervisor did not end it", rec.Name)
	}
	return nil
}

func sendRequest(ctx context.Context, socket string, req request) (Status, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return Status{}, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := json.NewEncoder(conn).Encode(req); err != nil {
		return Status{}, fmt.Errorf("ask supervisor: %w", err)
	}
	var status Status
	if err := json.NewDecoder(conn).Decode(&status); err != nil {
		return Status{}, fmt.Errorf("ask supervisor: %w", err)
	}
	return status, nil
}
