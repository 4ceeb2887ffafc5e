package gateway

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/errand-bot/errand/state"
)

// How long a provider may say nothing, unless it is configured, and after how many seconds an agent whose provider
// did is told to ask again: more than any waits by itself, so that its run ends and is tried again later.
const (
	defaultIdleTimeout = 10 * time.Minute
	retryLater         = "120"
)

// idleTimeouts are the runs whose provider gave no sign of life, and when.
type idleTimeouts struct{ perRun[time.Time] }

func (s *idleTimeouts) record(run string) {
	s.update(run, func(time.Time) time.Time { return time.Now() })
}

// recent reports whether a run met one within d.
func (s *idleTimeouts) recent(run string, d time.Duration) bool {
	at := s.get(run)
	return !at.IsZero() && time.Since(at) < d
}

func (g *Gateway) idleTimeout() time.Duration {
	if g.cfg.IdleTimeout > 0 {
		return g.cfg.IdleTimeout
	}
	return defaultIdleTimeout
}

// handleFailure answers a call whose provider said nothing for too long, or which was cut for a cap before its answer began; it
// reports whether err means that.
func (c *call) handleFailure(w http.ResponseWriter, err error) bool {
	if cut := c.cut.Load(); cut != nil {
		cut.answer(c, w)
		return true
	}
	var t net.Error
	if !errors.As(err, &t) || !t.Timeout() {
		return false
	}
	c.timedOut = true
	c.g.idle.record(c.task.Run.ID)
	c.answerTimedOut(w)
	return true
}

// answerTimedOut answers in the provider's place, and has the run remember why.
func (c *call) answerTimedOut(w http.ResponseWriter) {
	c.storeRefusal(&state.Waiting{Kind: state.WaitRefused, Detail: c.timeoutMessage()})
	w.Header().Set("Retry-After", retryLater)
	c.up.API.DropLongRetryAfter(w.Header(), c.g.now())
	if err := c.up.API.Fail(w, http.StatusServiceUnavailable, "overloaded_error", "errand: "+c.timeoutMessage()); err != nil {
		c.g.cfg.Log.Debug().Err(err).Msg("tether: answer")
	}
}

func (c *call) timeoutMessage() string {
	return fmt.Sprintf("the model's provider `%s` gave no sign of life for %s", c.provider, formatDuration(c.g.idleTimeout()))
}

// watchIdle cuts the answer off when nothing of it has come for too long.
func (m *meteredBody) watchIdle() {
	m.idleTimer = time.AfterFunc(m.call.g.idleTimeout(), func() {
		m.call.g.idle.record(m.call.task.Run.ID)
		m.call.g.cfg.Log.Warn().Str("provider", m.call.provider).Str("task", m.call.task.Key.String()).Msg("tether: the provider gives no sign of life in the middle of an answer, which is cut off")
		_ = m.ReadCloser.Close() // Read gets an error then
	})
}

// formatDuration writes a duration for people.
func formatDuration(d time.Duration) string {
	if d >= time.Minute && d%time.Minute == 0 {
		return fmt.Sprintf("%d min", int(d.Minutes()))
	}
	return fmt.Sprintf("%d s", int(d.Seconds()))
}
