package hetzner

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"
	"github.com/hetznercloud/hcloud-go/v2/hcloud/schema"

	"github.com/errand-bot/errand/internal/fleet"
)

const (
	// obeyFor is how long a VM may take to shut down; cutFor is how long it may take to be off after its power was cut.
	obeyFor = time.Minute
	cutFor  = time.Minute
)

// PowerOff shuts the VM down, and cuts its power if it is not off within a minute. It does nothing if the VM is off.
// The API must report twice that the VM is off, some seconds apart, because an image of a running VM may be unreadable.
func (p *Provider) PowerOff(ctx context.Context, id string) error {
	if err := p.powerOff(ctx, id); err != nil {
		return fmt.Errorf("power off server %s: %w", id, err)
	}
	return nil
}

func (p *Provider) powerOff(ctx context.Context, id string) error {
	s, err := p.oursByID(ctx, id)
	if err == nil && isOff(s) {
		s, err = p.serverAgain(ctx, s.ID)
	}
	if err != nil || isOff(s) {
		return err
	}
	p.forget(s.ID)
	// Success only means that the VM was notified, so the outcome of this call is not relevant.
	switch err := p.act(ctx, s.ID, "shutdown"); {
	case err == nil: // callers that find it off meanwhile need not ask why
		p.remember(s.ID, judgment{state: fleet.StateOff, status: string(hcloud.ServerStatusOff), rebuild: s.Labels[labelRebuild], at: p.cfg.Now()})
	case !errors.Is(err, fleet.ErrUnknownOutcome):
		return err
	}
	if off, err := p.awaitOff(ctx, s.ID, waitOff, obeyFor); off || err != nil {
		return err
	}
	if err := p.act(ctx, s.ID, "poweroff"); err != nil && !errors.Is(err, fleet.ErrUnknownOutcome) {
		return err
	}
	off, err := p.awaitOff(ctx, s.ID, waitCut, cutFor)
	if err == nil && !off {
		err = fmt.Errorf("%w: it is not off after %s", fleet.ErrBusy, obeyFor+cutFor)
	}
	return err
}

func isOff(s schema.Server) bool { return s.Status == string(hcloud.ServerStatusOff) }

func (p *Provider) awaitOff(ctx context.Context, id int64, kind waitKind, within time.Duration) (off bool, err error) {
	err = p.poll(ctx, kind, within, func() (bool, error) {
		s, err := p.server(ctx, id)
		if err == nil && isOff(s) {
			s, err = p.serverAgain(ctx, id)
		}
		if off = err == nil && isOff(s); off {
			p.rememberOff(s)
		}
		return off, err
	})
	return off, err
}

// serverAgain reads a server some seconds after a response that needs confirmation.
func (p *Provider) serverAgain(ctx context.Context, id int64) (schema.Server, error) {
	if err := p.cfg.Sleep(ctx, min(lookAgain, p.cfg.Tick)); err != nil {
		return schema.Server{}, err
	}
	return p.server(ctx, id)
}

// rememberOff records that errand has powered a server off, so that its actions need not be read to explain that it is
// off.
func (p *Provider) rememberOff(s schema.Server) {
	now := p.cfg.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.judged[s.ID] = judgment{state: fleet.StateOff, status: s.Status, rebuild: s.Labels[labelRebuild], at: now}
	p.off, p.offAt = s, now
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
func (p *Provider) poll(ctx context.Context, kind waitKind, within time.Duration, done func() (bool, error)) error {
	p.mu.Lock()
	first, measured := p.usual[kind]
	p.mu.Unlock()
	if !measured {
		first = firstTicks(kind) * p.cfg.Tick
	}
	first = min(max(first, min(within/10, p.cfg.Tick)), within/2)
	for wait, waited := first, time.Duration(0); waited < within; wait = min(max(first, waited), within-waited) {
		if err := p.cfg.Sleep(ctx, wait); err != nil {
			return err
		}
		waited += wait
		ok, err := done()
		if ok {
			p.learn(kind, first, waited)
		}
		if ok || err != nil {
			return err
		}
	}
	return nil
}

// learn records the duration of a wait for the next one of its kind. A wait that was over at its first check may have
// been over sooner, so the next first check is somewhat earlier.
func (p *Provider) learn(kind waitKind, first, waited time.Duration) {
	if waited == first {
		waited -= waited / 8
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.usual[kind] = waited
}

// act starts an action of a server without arguments.
func (p *Provider) act(ctx context.Context, id int64, what string) error {
	_, _, err := call[nothing](ctx, p, request{method: http.MethodPost, path: path("/servers/%d/actions/%s", id, what)})
	return err
}

// PowerOn starts a powered-off VM and returns before it is up.
func (p *Provider) PowerOn(ctx context.Context, id string) error {
	s, err := p.oursByID(ctx, id)
	if err == nil {
		p.forget(s.ID)
	}
	if err == nil && isOff(s) {
		err = p.act(ctx, s.ID, "poweron")
	}
	if err != nil {
		return fmt.Errorf("power on server %s: %w", id, err)
	}
	return nil
}
