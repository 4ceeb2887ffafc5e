package hetzner

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"
	"github.com/hetznercloud/hcloud-go/v2/hcloud/schema"

	"github.com/errand-bot/errand/internal/fleet"
)

// power switches servers off and on.
type power struct {
	*api
	servers *servers

	mu sync.Mutex
	// The last server powered off by errand, and the time when it was off.
	last       schema.Server
	offAt      time.Time
	usualWaits map[waitKind]time.Duration // time until the first check of a wait is useful
}

// serverOff returns a powered-off server, according to a recent response to PowerOff or a new request.
func (w *power) serverOff(ctx context.Context, id string) (schema.Server, error) {
	w.mu.Lock()
	last, at := w.last, w.offAt
	w.mu.Unlock()
	if strconv.FormatInt(last.ID, 10) == id && w.cfg.Now().Sub(at) < 2*w.cfg.Tick {
		return last, nil
	}
	s, err := w.servers.ownServerByID(ctx, id)
	if err == nil && !isOff(s) {
		err = fmt.Errorf("%w: it is %s, not off", fleet.ErrBusy, s.Status)
	}
	return s, err
}

const (
	// shutdownTimeout is how long a VM may take to shut down; powerCutTimeout is how long it may take to be off after
	// its power was cut.
	shutdownTimeout = time.Minute
	powerCutTimeout = time.Minute
)

// PowerOff shuts the VM down, and cuts its power if it is not off within a minute. It does nothing if the VM is off.
// The API must report twice that the VM is off, some seconds apart, because an image of a running VM may be unreadable.
func (p *Provider) PowerOff(ctx context.Context, id string) error {
	if err := p.power.powerOff(ctx, id); err != nil {
		return fmt.Errorf("power off server %s: %w", id, err)
	}
	return nil
}

func (w *power) powerOff(ctx context.Context, id string) error {
	s, err := w.servers.ownServerByID(ctx, id)
	if err == nil && isOff(s) {
		s, err = w.rereadServer(ctx, s.ID)
	}
	if err != nil || isOff(s) {
		return err
	}
	w.servers.dropState(s.ID)
	// Success only means that the VM was notified, so the outcome of this call is not relevant.
	switch err := w.startAction(ctx, s.ID, "shutdown"); {
	case err == nil: // callers that find it off meanwhile need not ask why
		w.servers.cacheState(s.ID, serverState{
			state:   fleet.StateOff,
			status:  string(hcloud.ServerStatusOff),
			rebuild: s.Labels[labelRebuild],
			at:      w.cfg.Now(),
		})
	case !errors.Is(err, fleet.ErrUnknownOutcome):
		return err
	}
	if off, err := w.awaitOff(ctx, s.ID, waitOff, shutdownTimeout); off || err != nil {
		return err
	}
	if err := w.startAction(ctx, s.ID, "poweroff"); err != nil && !errors.Is(err, fleet.ErrUnknownOutcome) {
		return err
	}
	off, err := w.awaitOff(ctx, s.ID, waitCut, powerCutTimeout)
	if err == nil && !off {
		err = fmt.Errorf("%w: it is not off after %s", fleet.ErrBusy, shutdownTimeout+powerCutTimeout)
	}
	return err
}

func isOff(s schema.Server) bool { return s.Status == string(hcloud.ServerStatusOff) }

func (w *power) awaitOff(ctx context.Context, id int64, kind waitKind, within time.Duration) (off bool, err error) {
	err = w.poll(ctx, kind, within, func() (bool, error) {
		s, err := w.servers.byID(ctx, id)
		if err == nil && isOff(s) {
			s, err = w.rereadServer(ctx, id)
		}
		if off = err == nil && isOff(s); off {
			w.rememberOff(s)
		}
		return off, err
	})
	return off, err
}

// rereadServer reads a server some seconds after a response that needs confirmation.
func (w *power) rereadServer(ctx context.Context, id int64) (schema.Server, error) {
	if err := w.cfg.Sleep(ctx, min(recheckInterval, w.cfg.Tick)); err != nil {
		return schema.Server{}, err
	}
	return w.servers.byID(ctx, id)
}

// rememberOff records that errand has powered a server off, so that its actions need not be read to explain that it is
// off.
func (w *power) rememberOff(s schema.Server) {
	now := w.cfg.Now()
	w.servers.cacheState(s.ID, serverState{state: fleet.StateOff, status: s.Status, rebuild: s.Labels[labelRebuild], at: now})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last, w.offAt = s, now
}

// waitKind is a kind of slow operation of servers.
type waitKind string

const (
	waitOff  waitKind = "off"  // power-off after a shutdown request
	waitCut  waitKind = "cut"  // power-off after the power was cut
	waitGone waitKind = "gone" // deletion
)

// firstTicks is the time, in Config.Tick, until the first check of a kind of wait if none was measured. Systems take up
// to half a minute to shut down, and deletions a few seconds.
func firstTicks(kind waitKind) time.Duration {
	if kind == waitOff {
		return 6
	}
	return 2
}

// poll checks until done returns true or the time is over, which is not an error. The first check is after the duration
// of the last wait of the same kind, or after firstTicks if there was none, and after half of the time at the latest.
// After that the interval doubles.
func (w *power) poll(ctx context.Context, kind waitKind, within time.Duration, done func() (bool, error)) error {
	w.mu.Lock()
	first, measured := w.usualWaits[kind]
	w.mu.Unlock()
	if !measured {
		first = firstTicks(kind) * w.cfg.Tick
	}
	first = min(max(first, min(within/10, w.cfg.Tick)), within/2)
	for wait, waited := first, time.Duration(0); waited < within; wait = min(max(first, waited), within-waited) {
		if err := w.cfg.Sleep(ctx, wait); err != nil {
			return err
		}
		waited += wait
		ok, err := done()
		if ok {
			w.recordWait(kind, first, waited)
		}
		if ok || err != nil {
			return err
		}
	}
	return nil
}

// recordWait records the duration of a wait for the next one of its kind. A wait that was over at its first check may
// have been over sooner, so the next first check is somewhat earlier.
func (w *power) recordWait(kind waitKind, first, waited time.Duration) {
	if waited == first {
		waited -= waited / 8
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.usualWaits[kind] = waited
}

// startAction starts an action of a server without arguments.
func (w *power) startAction(ctx context.Context, id int64, what string) error {
	_, _, err := call[nothing](ctx, w.api, request{method: http.MethodPost, path: formatPath("/servers/%d/actions/%s", id, what)})
	return err
}

// PowerOn starts a powered-off VM and returns before it is up.
func (p *Provider) PowerOn(ctx context.Context, id string) error {
	s, err := p.servers.ownServerByID(ctx, id)
	if err == nil {
		p.servers.dropState(s.ID)
	}
	if err == nil && isOff(s) {
		err = p.power.startAction(ctx, s.ID, "poweron")
	}
	if err != nil {
		return fmt.Errorf("power on server %s: %w", id, err)
	}
	return nil
}
