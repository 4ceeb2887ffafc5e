package gateway

import (
	"context"
	"net/http"
	"time"

	"github.com/errand-bot/errand/internal/egress"
	"github.com/errand-bot/errand/state"
)

// retrySoon is the Retry-After of a temporary denial in seconds. It is short because each attempt waits in the queue
// again.
const retrySoon = "2"

// A denial explains why the gateway refuses a model call.
type denial struct {
	rule       string // the rule that denied the call, for the log
	status     int
	kind       string // the type of the API's error; empty for an answer in plain text, which is not logged
	message    string // for the agent and the log
	retryAfter string // in seconds; empty if the header is not set

	// listed names the requested model or feature in the list of refused requests for other hosts; empty if it is not
	// listed.
	listed string
	// stored is stored with the run, because its program may not report the denial; nil if nothing is stored.
	stored *state.Waiting
}

// newRuleDenial returns the denial of a request that breaks a rule.
func newRuleDenial(message string) *denial {
	return &denial{
		status: http.StatusForbidden, kind: "permission_error", message: message,
		stored: &state.Waiting{Kind: state.WaitRefused, Detail: "errand denied a model call: " + message},
	}
}

// newCapDenial returns a denial that ends the run. Stored is the reason why the run or its task waits.
func newCapDenial(message string, stored *state.Waiting) *denial {
	return &denial{status: http.StatusForbidden, kind: "permission_error", message: message, stored: stored}
}

// newTemporaryDenial returns a temporary denial: the program may retry shortly, and its run continues.
func newTemporaryDenial(message string) *denial {
	return &denial{status: http.StatusTooManyRequests, kind: "rate_limit_error", message: message, retryAfter: retrySoon}
}

// isTemporary reports whether the call may be admitted as soon as other calls have finished.
func (d *denial) isTemporary() bool { return d.status == http.StatusTooManyRequests }

// deny answers a call that is denied, after it has logged and stored the reason. A denial that ends the run becomes an
// error if the reason cannot be stored.
func (c *call) deny(w http.ResponseWriter, d *denial) {
	if d.kind == "" {
		c.answerDenial(w, d)
		return
	}
	if d.stored != nil && d.stored.Kind != state.WaitRefused {
		if err := c.storeWait(d.stored); err != nil {
			c.answerStoreError(w, err)
			return
		}
	}
	if logged := c.g.logDenial(c, d); logged && d.stored != nil && d.stored.Kind == state.WaitRefused {
		c.storeRefusal(d.stored)
	}
	if d.listed != "" && c.g.cfg.Denied != nil {
		c.g.cfg.Denied(c.task, egress.Request{At: c.g.now(), Method: c.method, Host: d.listed, Port: c.provider, Reason: d.message})
	}
	c.answerDenial(w, d)
}

// answerDenial answers in the API's own form.
func (c *call) answerDenial(w http.ResponseWriter, d *denial) {
	if d.retryAfter != "" {
		w.Header().Set("Retry-After", d.retryAfter)
	}
	if d.kind == "" {
		http.Error(w, "errand: "+d.message, d.status)
		return
	}
	if err := c.up.API.Fail(w, d.status, d.kind, "errand: "+d.message); err != nil {
		c.g.cfg.Log.Debug().Err(err).Str("task", c.entry.key.String()).Str("run", c.entry.run).Msg("failed to answer a denied model call")
	}
}

// storeWait stores with the run why it gets no answer, unless that is stored already.
func (c *call) storeWait(why *state.Waiting) error {
	run := c.task.Run
	if why.Kind == state.WaitRefused && run.CallDenial == why.Detail {
		return nil
	}
	if h := run.RunDenial; h != nil && h.Kind == why.Kind && h.Until.Equal(why.Until) {
		return nil
	}
	return c.record(context.Background(), UsageRecord{Wait: why})
}

// storeRefusal is storeWait for a refusal that does not change how the run ends. An error is only logged.
func (c *call) storeRefusal(why *state.Waiting) {
	if err := c.storeWait(why); err != nil {
		c.g.cfg.Log.Warn().Err(err).Str("run", c.entry.run).Msg("failed to store why a model call was denied")
	}
}

// logDenial logs a denial, at most one of a run in denialLogInterval, and reports whether it did.
func (g *Gateway) logDenial(c *call, d *denial) bool {
	suppressed, ok := g.denials.mayLog(c.entry.run, g.now())
	if ok {
		g.cfg.Log.Warn().Str("task", c.entry.key.String()).Str("run", c.entry.run).Str("path", c.path).Str("rule", d.rule).
			Str("reason", d.message).Int("suppressed", suppressed).Msg("model call denied")
	}
	return ok
}

// denialLogInterval limits how often denials of one run are logged.
const denialLogInterval = time.Minute

// denialLog limits how often it is logged that calls of a run are denied: an agent may repeat them without end.
type denialLog struct{ perRun[loggedDenial] }

type loggedDenial struct {
	at         time.Time
	suppressed int
}

// mayLog reports whether a denial may be logged, and how many were suppressed since the last one that was.
func (r *denialLog) mayLog(run string, now time.Time) (suppressed int, ok bool) {
	r.update(run, func(l loggedDenial) loggedDenial {
		if !l.at.IsZero() && now.Sub(l.at) < denialLogInterval {
			l.suppressed++
			return l
		}
		suppressed, ok = l.suppressed, true
		return loggedDenial{at: now}
	})
	return suppressed, ok
}
