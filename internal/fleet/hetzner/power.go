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
	// obeyFor is how long a VM may take to shut down by itself, cutFor how long to be off once cut off.
	obeyFor = time.Minute
	cutFor  = time.Minute
)

// PowerOff asks the VM to shut down, and cuts it off if it has not within a minute. Called for one that is
// off it does nothing.
func (p *Provider) PowerOff(ctx context.Context, id string) error {
	if err := p.powerOff(ctx, id); err != nil {
		return fmt.Errorf("power off server %s: %w", id, err)
	}
	return nil
}

func (p *Provider) powerOff(ctx context.Context, id string) error {
	s, err := p.oursByID(ctx, id)
	if err != nil || isOff(s) {
		return err
	}
	p.forget(s.ID)
	// The API's "done" means only that the VM was told; so nothing rests on this call's outcome.
	if err := p.act(ctx, s.ID, "shutdown"); err != nil && !errors.Is(err, fleet.ErrUnknownOutcome) {
		return err
	}
	if off, err := p.awaitOff(ctx, s.ID, obeyFor); off || err != nil {
		return err
	}
	if err := p.act(ctx, s.ID, "poweroff"); err != nil && !errors.Is(err, fleet.ErrUnknownOutcome) {
		return err
	}
	off, err := p.awaitOff(ctx, s.ID, cutFor)
	if err == nil && !off {
		err = fmt.Errorf("%w: it is not off after %s", fleet.ErrBusy, obeyFor+cutFor)
	}
	return err
}

func isOff(s schema.Server) bool { return s.Status == string(hcloud.ServerStatusOff) }

func (p *Provider) awaitOff(ctx context.Context, id int64, within time.Duration) (off bool, err error) {
	p.mu.Lock()
	first := min(3*p.offTook/4, within)
	p.mu.Unlock()
	began := p.cfg.Now()
	err = p.pollFrom(ctx, first, within, func() (bool, error) {
		s, err := p.server(ctx, id)
		if off = err == nil && isOff(s); off {
			p.rests(s, began)
		}
		return off, err
	})
	return off, err
}

// rests remembers that we have powered a server off, so that nobody has to ask for its actions to know why it is off,
// and how long that took.
func (p *Provider) rests(s schema.Server, began time.Time) {
	now := p.cfg.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.judged[s.ID] = judgment{state: fleet.StateOff, status: s.Status, rebuild: s.Labels[labelRebuild], at: now}
	p.off, p.offAt, p.offTook = s, now, now.Sub(began)
}

// poll checks until it is done or the time is over, which is no error.
func (p *Provider) poll(ctx context.Context, within time.Duration, done func() (bool, error)) error {
	return p.pollFrom(ctx, 0, within, done)
}

// pollFrom is poll whose first check is after the time first, or if that is 0 after a fifth of the time, or two of
// Config.Tick if those are shorter. From then on the time between two checks doubles.
func (p *Provider) pollFrom(ctx context.Context, first, within time.Duration, done func() (bool, error)) error {
	if first <= 0 {
		first = min(within/5, 2*p.cfg.Tick)
	}
	for wait, waited := first, time.Duration(0); waited < within; wait = min(max(first, waited), within-waited) {
		if err := p.cfg.Sleep(ctx, wait); err != nil {
			return err
		}
		waited += wait
		if ok, err := done(); ok || err != nil {
			return err
		}
	}
	return nil
}

// act starts an action of a server that takes no arguments.
func (p *Provider) act(ctx context.Context, id int64, what string) error {
	_, _, err := call[nothing](ctx, p, request{method: http.MethodPost, path: path("/servers/%d/actions/%s", id, what)})
	return err
}

// PowerOn starts a VM that is off, and returns before it is up.
func (p *Provider) PowerOn(ctx context.Context, id string) error {
	s, err := p.oursByID(ctx, id)
	if err == nil && isOff(s) {
		p.forget(s.ID)
		err = p.act(ctx, s.ID, "poweron")
	}
	if err != nil {
		return fmt.Errorf("power on server %s: %w", id, err)
	}
	return nil
}
