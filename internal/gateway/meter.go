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

// When a stream is checked against the caps, in bytes.
const (
	firstCheck    = 1 << 10
	checkInterval = 16 << 10
	maxOverrun    = 1 << 20 // after a cap was reached, until the end of an event
)

// errCapReached ends an answer at a cap if no event ends within maxOverrun.
var errCapReached = errors.New("a cap was reached in the middle of an answer")

// meteredBody counts an answer while it is read, and charges it once, at its end or when it is abandoned. A stream that
// reaches a cap is ended after one of its events with the API's error event.
type meteredBody struct {
	io.ReadCloser
	ctx     context.Context //nolint:containedctx // an answer lives within one request
	call    *call
	counter *modelapi.Counter
	charged bool

	idleTimer  *time.Timer // ends an answer of which nothing comes
	untilCheck int         // bytes until the next check
	cutOff     *cutOff     // the cap that was reached
	overrun    int         // bytes since then
	end        []byte      // the last bytes that were read
	tail       []byte      // the rest of the error event, which is read after the last event
	ended      bool        // only the tail is left to read
}

// meter returns an answer's body that counts and charges the answer.
func (c *call) meter(ctx context.Context, body io.ReadCloser, kind string) *meteredBody {
	m := &meteredBody{ReadCloser: body, ctx: ctx, call: c, counter: modelapi.NewCounter(kind, c.estimate.Input), untilCheck: firstCheck}
	c.g.inFlight.setCounter(c, m.counter)
	m.watchIdle()
	return m
}

func (m *meteredBody) Read(p []byte) (int, error) {
	if m.ended {
		return m.appendTail(p, 0)
	}
	if m.cutOff == nil && m.counter.Streams() {
		p = p[:min(len(p), m.untilCheck)] // not beyond the next check
	}
	n, err := m.ReadCloser.Read(p)
	if !m.charged {
		m.idleTimer.Reset(m.call.g.idleTimeout())
	}
	if n > 0 {
		_, _ = m.counter.Write(p[:n]) // never fails
		if m.counter.Streams() {
			m.checkCaps(n)
		}
	}
	if cut := m.call.cut.Load(); cut != nil && m.cutOff == nil && m.counter.Streams() {
		m.cutOff = cut // by enforceCaps
	}
	if m.cutOff != nil {
		at := lastEvent(m.end, p[:n])
		if n == 0 && len(m.end) == 0 {
			at = 0 // nothing was read yet
		}
		if at >= 0 {
			m.ended, m.tail = true, m.cutOff.event(m.call.up.API)
			m.settle()
			return m.appendTail(p, at)
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

// appendTail appends the tail to the first n bytes of p.
func (m *meteredBody) appendTail(p []byte, n int) (int, error) {
	k := copy(p[n:], m.tail)
	if m.tail = m.tail[k:]; n+k == 0 {
		return 0, io.EOF
	}
	return n + k, nil
}

// checkCaps checks the stream against the caps when checkInterval bytes have been read since the last check.
func (m *meteredBody) checkCaps(n int) {
	if m.untilCheck -= n; m.untilCheck > 0 || m.cutOff != nil {
		return
	}
	m.untilCheck = checkInterval
	reached, err := m.call.passedCap(m.ctx)
	if err != nil { // the next check may succeed; otherwise the next call is denied
		m.call.g.cfg.Log.Warn().Err(err).Str("task", m.call.task.Key.String()).Msg("failed to check a stream against the caps; retrying")
		return
	}
	m.cutOff = reached
}

// Close charges the answer if it was not read to its end.
func (m *meteredBody) Close() error {
	m.settle()
	return m.ReadCloser.Close()
}

// settle charges the answer once.
func (m *meteredBody) settle() {
	if m.charged {
		return
	}
	m.charged = true
	m.idleTimer.Stop()
	u, ok := m.counter.Close()
	cut := m.call.cut.Load()
	if m.cutOff != nil {
		cut = m.cutOff
	}
	if (m.ctx.Err() != nil || cut != nil) && !m.counter.Final() { // abandoned by its program or by errand
		u.Output = max(u.Output, m.call.hiddenTokens())
	}
	if ok || cut != nil || u.Output > 0 {
		m.call.charge(m.ctx, u, cmp.Or(cut.storedCap(), incompleteReason(m.counter.Ending())))
	}
}

// incompleteReason returns the reason that is stored with the run for an incomplete answer, which its program does not
// report; nil for others.
func incompleteReason(e modelapi.Ending) *state.Waiting {
	switch e {
	case modelapi.EndingTruncated:
		return &state.Waiting{
			Kind:   state.WaitAnswerCut,
			Detail: "the model's answer reached its output limit, so its end is missing: it has to be shorter",
		}
	case modelapi.EndingBlocked:
		return &state.Waiting{Kind: state.WaitAnswerBlocked, Detail: "the model's provider blocked the rest of the answer"}
	}
	return nil
}

// eventEnd is the length of the longest end of an event in bytes.
const eventEnd = 4

// lastBytes returns the last bytes of before followed by p.
func lastBytes(before, p []byte) []byte {
	all := p
	if len(p) < eventEnd {
		all = append(bytes.Clone(before), p...)
	}
	return all[max(len(all)-eventEnd, 0):]
}

// lastEvent returns the index in p after the last end of an event in before followed by p, or -1.
func lastEvent(before, p []byte) int {
	all, at := append(bytes.Clone(before), p...), -1
	for _, end := range []string{"\n\n", "\r\r", "\r\n\r\n"} {
		if i := bytes.LastIndex(all, []byte(end)); i >= 0 {
			at = max(at, i+len(end)-len(before))
		}
	}
	return at
}
