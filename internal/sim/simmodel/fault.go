package simmodel

import (
	"context"
	"net/http"

	"github.com/errand-bot/errand/internal/clock"
)

// statusClientGone marks records of requests whose client disconnected before the response.
const statusClientGone = 499

// hold waits for the turn's gate and delay.
func (s *Server) hold(ctx context.Context, p play) error {
	if p.turn.Wait != "" {
		bounded, cancel := context.WithTimeout(ctx, s.cfg.MaxHold)
		defer cancel()
		err := s.gates.pass(bounded, p.turn.Wait)
		switch {
		case ctx.Err() != nil:
			return apiError{Status: statusClientGone, Message: "the client has gone"}
		case err != nil:
			return apiError{Status: 529, Message: "simmodel: nobody opened the gate " + p.turn.Wait}
		}
	}
	if clock.Sleep(ctx, p.turn.Delay) != nil {
		return apiError{Status: statusClientGone, Message: "the client has gone"}
	}
	return nil
}

// fault returns the turn's scripted failure if it still applies, otherwise the zero value.
func (s *Server) fault(p play) apiError {
	if p.turn.Status == 0 || p.turn.Status == http.StatusOK || !s.strike(p, "status") {
		return apiError{}
	}
	return apiError{Status: p.turn.Status, Message: p.turn.Message, RetryAfter: p.turn.RetryAfter, Header: p.turn.Header}
}

// strike counts one use of a fault for this conversation and reports whether it applies.
func (s *Server) strike(p play, kind string) bool {
	times := p.turn.Times
	if times < 0 {
		return true
	}
	if times == 0 {
		times = 1
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	const maxFaults = 10_000
	if len(s.faults) >= maxFaults {
		clear(s.faults)
	}
	s.faults[kind+p.key]++
	return s.faults[kind+p.key] <= times
}
