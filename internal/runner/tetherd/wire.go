// Package tetherd is the VM's end of the tether: a loopback port whose connections become streams to the attached
// orchestrator.
//
// [Serve] owns the port. The orchestrator attaches by running `errand-runner tether attach` over an SSH exec channel;
// from the first byte on, that command's standard input and output are one yamux session. The VM is the yamux client
// and opens a stream for every connection that it accepts; the orchestrator is the yamux server and accepts them. A
// newer attach replaces an older one. Without an attached orchestrator, connections wait and nothing is read from
// them.
//
// Start here: [Serve] and [Attach].
package tetherd

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// Status is the state of the daemon.
type Status struct {
	// Listen is the address of the port.
	Listen string `json:"listen"`
	// Attached is true while an orchestrator is attached.
	Attached bool `json:"attached"`
	// Open is the number of connections that wait for the other side: for an orchestrator to attach, for the beginning of an answer, or
	// in the middle of an answer that was being transferred recently.
	Open int `json:"open"`
	// Unattached is the number of connections that wait for an orchestrator to attach.
	Unattached int `json:"held"`
	// Already is true in the answer of a detached start that found a running daemon.
	Already bool `json:"already,omitempty"`
}

// ErrNotServing means that there is no daemon.
var ErrNotServing = errors.New("no tether is being served")

// The orders on the control socket, one per connection, as a line.
const (
	orderAttach = "attach"
	orderStatus = "status"
	orderStop   = "stop"
)

// attachAnswer is the line after which a control connection is a yamux session.
const attachAnswer = "attached"

const orderTimeout = 10 * time.Second

// dial connects to the daemon's control socket and sends an order.
func dial(ctx context.Context, dir, order string) (net.Conn, *bufio.Reader, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", socketPath(dir))
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrNotServing, err)
	}
	deadline := time.Now().Add(orderTimeout)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	_ = conn.SetDeadline(deadline)
	if _, err := io.WriteString(conn, order+"\n"); err != nil {
		_ = conn.Close()
		return nil, nil, fmt.Errorf("order %s: %w", order, err)
	}
	return conn, bufio.NewReader(conn), nil
}

// Ask returns the daemon's status, or an error that wraps ErrNotServing.
func Ask(ctx context.Context, dir string) (Status, error) {
	return ask(ctx, dir, orderStatus)
}

// Stop ends the daemon and returns its last status. Connections are closed.
func Stop(ctx context.Context, dir string) (Status, error) {
	return ask(ctx, dir, orderStop)
}

func ask(ctx context.Context, dir, order string) (Status, error) {
	conn, reader, err := dial(ctx, dir, order)
	if err != nil {
		return Status{}, err
	}
	defer conn.Close()
	var status Status
	if err := json.NewDecoder(reader).Decode(&status); err != nil {
		return Status{}, fmt.Errorf("ask tether for %s: %w", order, err)
	}
	return status, nil
}
