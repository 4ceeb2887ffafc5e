package gateway

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/errand-bot/errand/state"
)

// defaultIdleTimeout is how long a provider may send nothing, unless it is configured.
const defaultIdleTimeout = 10 * time.Minute

// retryLater is the Retry-After after an idle timeout, in seconds. No agent waits that long, so the run ends and is
// repeated later.
const retryLater = "120"

// idleTimeouts has the time of each run's last idle timeout.
type idleTimeouts struct{ perRun[time.Time] }

// record records an idle timeout of a run.
func (s *idleTimeouts) record(run string) {
	s.update(run, func(time.Time) time.Time { return time.Now() })
}

// recent reports whether a run had an idle timeout within the last d.
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

// handleFailure answers a call that failed with err if the provider timed out or the call was ended at a cap; it
// reports whether it did.
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

// answerTimedOut answers instead of a provider that timed out, and stores the reason with the run.
func (c *call) answerTimedOut(w http.ResponseWriter) {
	c.storeRefusal(&state.Waiting{Kind: state.WaitRefused, Detail: c.timeoutMessage()})
	w.Header().Set("Retry-After", retryLater)
	c.up.API.DropLongRetryAfter(w.Header(), c.g.now())
	if err := c.up.API.Fail(w, http.StatusServiceUnavailable, "overloaded_error", "errand: "+c.timeoutMessage()); err != nil {
		c.g.cfg.Log.Debug().Err(err).Msg("failed to answer a model call that timed out")
	}
}

func (c *call) timeoutMessage() string {
	return fmt.Sprintf("the model's provider `%s` sent nothing for %s", c.provider, state.DurationText(c.g.idleTimeout()))
}

// watchIdle ends the answer when nothing of it is received for the idle timeout.
func (m *meteredBody) watchIdle() {
	m.idleTimer = time.AfterFunc(m.call.g.idleTimeout(), func() {
		m.call.g.idle.record(m.call.task.Run.ID)
		m.call.g.cfg.Log.Warn().Str("provider", m.call.provider).Str("task", m.call.task.Key.String()).
			Msg("model provider timed out in the middle of an answer; answer ended")
		_ = m.ReadCloser.Close() // Read returns an error then
	})
}
