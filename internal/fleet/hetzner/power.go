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
	// firstPoll is the wait before the first look at something that goes on; each next one is three
	// times as long, up to slowPoll.
	firstPoll = 250 * time.Millisecond
	slowPoll  = 4 * time.Second
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
	err = p.poll(ctx, within, func() (bool, error) {
		s, err := p.server(ctx, id)
		off = err == nil && isOff(s)
		return off, err
	})
	return off, err
}

// poll looks until it is done or the time is over, which is no error.
func (p *Provider) poll(ctx context.Context, within time.Duration, done func() (bool, error)) error {
	for wait, waited := firstPoll, time.Duration(0); waited < within; wait = min(3*wait, slowPoll) {
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
