package gateway

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"time"

	"github.com/errand-bot/errand/internal/modelapi"
	"github.com/errand-bot/errand/state"
)

// How many bytes of a stream pass between two looks at the caps, and how many may pass after a cap until an
// event ends.
const (
	firstCheck    = 1 << 10
	checkInterval = 16 << 10
	maxOverrun    = 1 << 20
)

// errCapReached cuts an answer off where no event ends.
var errCapReached = errors.New("a cap was reached in the middle of an answer")

// meteredBody counts an answer while it is read, and pays once, at its end or when it is given up. A stream that
// reaches a cap is ended after one of its events by the API's own event for failures.
type meteredBody struct {
	io.ReadCloser
	ctx     context.Context //nolint:containedctx // an answer lives within one request
	call    *call
	counter *modelapi.Counter
	paid    bool

	idleTimer  *time.Timer // cuts a silent answer off
	untilCheck int         // bytes until the next look
	cutOff     *cutOff     // the cap that is reached
	overrun    int         // bytes that passed since
	end        []byte      // the last bytes that passed
	tail       []byte      // what is still to be said after the last event
	ended      bool
}

func (c *call) meter(ctx context.Context, body io.ReadCloser, kind string) *meteredBody {
	m := &meteredBody{ReadCloser: body, ctx: ctx, call: c, counter: modelapi.NewCounter(kind, c.requestBytes), untilCheck: firstCheck}
	c.g.inFlight.setCounter(c, m.counter)
	m.watchIdle()
	return m
}

func (m *meteredBody) Read(p []byte) (int, error) {
	if m.ended {
		return m.finish(p, 0)
	}
	if m.cutOff == nil && m.counter.Streams() {
		p = p[:min(len(p), m.untilCheck)] // not beyond the next look
	}
	n, err := m.ReadCloser.Read(p)
	if !m.paid {
		m.idleTimer.Reset(m.call.g.idleTimeout())
	}
	if n > 0 {
		_, _ = m.counter.Write(p[:n]) // never fails
		if m.counter.Streams() {
			m.checkCaps(n)
		}
	}
	if cut := m.call.cut.Load(); cut != nil && m.cutOff == nil && m.counter.Streams() {
		m.cutOff = cut // while nothing came
	}
	if m.cutOff != nil {
		at := lastEvent(m.end, p[:n])
		if n == 0 && len(m.end) == 0 {
			at = 0 // nothing has come
		}
		if at >= 0 {
			m.ended, m.tail = true, m.cutOff.event(m.call.up.API)
			m.settle()
			return m.finish(p, at)
		}
		if m.overrun += n; m.overrun > maxOverrun {
			err = errCapReached
		}
	}
	if n > 0 {
		m.end = append(m.end[:0], lastBytes(m.end, p[:n])...)
	}
	if err != nil {
		m.settle()
	}
	return n, err
}

// finish puts the tail behind the first n bytes of p.
func (m *meteredBody) finish(p []byte, n int) (int, error) {
	k := copy(p[n:], m.tail)
	if m.tail = m.tail[k:]; n+k == 0 {
		return 0, io.EOF
	}
	return n + k, nil
}

// checkCaps holds what has been used so far against the caps, every so many bytes.
func (m *meteredBody) checkCaps(n int) {
	if m.untilCheck -= n; m.untilCheck > 0 || m.cutOff != nil {
		return
	}
	m.untilCheck = checkInterval
	over, err := m.call.passedCap(m.ctx)
	if err != nil { // the next look may succeed, and the next call is refused if it cannot be looked up
		m.call.g.cfg.Log.Warn().Err(err).Str("task", m.call.task.Key.String()).Msg("tether: look up what was spent")
		return
	}
	m.cutOff = over
}

func (m *meteredBody) Close() error {
	m.settle()
	return m.ReadCloser.Close()
}

func (m *meteredBody) settle() {
	if m.paid {
		return
	}
	m.paid = true
	m.idleTimer.Stop()
	u, ok := m.counter.Close()
	cut := m.call.cut.Load()
	if m.cutOff != nil {
		cut = m.cutOff
	}
	if (m.ctx.Err() != nil || cut != nil) && !m.counter.Final() { // its program has given it up, or errand has
		u.Output = max(u.Output, m.call.hiddenTokens())
	}
	if ok || cut != nil || u.Output > 0 {
		m.call.charge(m.ctx, u, cmp.Or(cut.storedCap(), unfinished(m.counter.Ending())))
	}
}

// unfinished is what a run has to remember of an answer of whose end its program says nothing; nil for others.
func unfinished(e modelapi.Ending) *state.Waiting {
	switch e {
	case modelapi.EndingTruncated:
		return &state.Waiting{Kind: state.WaitAnswerCut, Detail: "the model's answer reached its output limit, so its end is missing: it has to be shorter"}
	case modelapi.EndingBlocked:
		return &state.Waiting{Kind: state.WaitAnswerBlocked, Detail: "the model's provider blocked the rest of the answer"}
	}
	return nil
}

// eventEnd is how many bytes the longest end of an event has.
const eventEnd = 4

// lastBytes returns the last bytes of all that passed.
func lastBytes(before, p []byte) []byte {
	all := p
	if len(p) < eventEnd {
		all = append(bytes.Clone(before), p...)
	}
	return all[max(len(all)-eventEnd, 0):]
}

// lastEvent returns where in p the last event ends of a stream of which before passed already; -1 if none does.
func lastEvent(before, p []byte) int {
	all, at := append(bytes.Clone(before), p...), -1
	for _, end := range []string{"\n\n", "\r\r", "\r\n\r\n"} {
		if i := bytes.LastIndex(all, []byte(end)); i >= 0 {
			at = max(at, i+len(end)-len(before))
		}
	}
	return at
}
