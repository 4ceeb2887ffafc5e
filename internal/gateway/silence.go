package gateway

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// How long a provider may say nothing, unless it is configured, and after how many seconds an agent whose provider
// did is told to ask again: more than any waits by itself, so that its run ends and is tried again later.
const (
	defaultSilence = 10 * time.Minute
	askAgainAfter  = "120"
)

// silences are the runs whose provider gave no sign of life, and when.
type silences struct{ perRun[time.Time] }

func (s *silences) met(run string) {
	s.change(run, func(time.Time) time.Time { return time.Now() })
}

// lately reports whether a run met one within d.
func (s *silences) lately(run string, d time.Duration) bool {
	at := s.of(run)
	return !at.IsZero() && time.Since(at) < d
}

func (g *Gateway) silence() time.Duration {
	if g.cfg.Silence > 0 {
		return g.cfg.Silence
	}
	return defaultSilence
}

// unanswered answers a call whose provider said nothing for too long, or which was cut for a cap before its answer began; it
// reports whether err means that.
func (c *call) unanswered(w http.ResponseWriter, err error) bool {
	if cut := c.cut.Load(); cut != nil {
		cut.answer(c, w)
		return true
	}
	var t net.Error
	if !errors.As(err, &t) || !t.Timeout() {
		return false
	}
	c.unheard = true
	c.g.silent.met(c.task.Run.ID)
	c.saySilent(w)
	return true
}

// saySilent answers in the provider's place, and has the run remember why.
func (c *call) saySilent(w http.ResponseWriter) {
	c.g.recordDenial(c.task, c.silentWords())
	w.Header().Set("Retry-After", askAgainAfter)
	c.up.API.Hurry(w.Header(), c.g.now())
	if err := c.up.API.Fail(w, http.StatusServiceUnavailable, "overloaded_error", "errand: "+c.silentWords()); err != nil {
		c.g.cfg.Log.Debug().Err(err).Msg("tether: answer")
	}
}

func (c *call) silentWords() string {
	return fmt.Sprintf("the model's provider `%s` gave no sign of life for %s", c.name, span(c.g.silence()))
}

// listen cuts the answer off when nothing of it has come for too long.
func (m *metered) listen() {
	m.quiet = time.AfterFunc(m.call.g.silence(), func() {
		m.call.g.silent.met(m.call.task.Run.ID)
		m.call.g.cfg.Log.Warn().Str("provider", m.call.name).Str("task", m.call.task.Key.String()).Msg("tether: the provider gives no sign of life in the middle of an answer, which is cut off")
		_ = m.ReadCloser.Close() // Read gets an error then
	})
}

// span writes a duration for people.
func span(d time.Duration) string {
	if d >= time.Minute && d%time.Minute == 0 {
		return fmt.Sprintf("%d min", int(d.Minutes()))
	}
	return fmt.Sprintf("%d s", int(d.Seconds()))
}
