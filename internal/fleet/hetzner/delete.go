package hetzner

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"
	"github.com/hetznercloud/hcloud-go/v2/hcloud/schema"

	"github.com/errand-bot/errand/internal/fleet"
)

// A deleter deletes servers and confirms that they are gone.
type deleter struct {
	*api
	servers   *servers
	addresses *addresses
	power     *power
}

const (
	// goneTimeout is how long Delete waits for the deletion to finish.
	goneTimeout = 20 * time.Second
	// recheckInterval is the time between two checks of a server if a single response is not sufficient. It is
	// Config.Tick if that is shorter, as in tests.
	recheckInterval = 5 * time.Second
)

// Delete deletes this deployment's server of this name with its addresses. It returns when the API confirms, by ID,
// that the server does not exist; fleet.ErrBusy means that this takes longer or failed. A name that is not listed is
// not an error: use DeleteByID for a server whose ID is known.
func (p *Provider) Delete(ctx context.Context, name string, why fleet.Reason) error {
	s, err := p.servers.ownServerByName(ctx, name)
	if errors.Is(err, fleet.ErrNotFound) {
		return nil
	}
	if err == nil {
		err = p.deletion.delete(ctx, *s, why)
	}
	if err != nil {
		return fmt.Errorf("delete VM %s: %w", name, err)
	}
	return nil
}

// DeleteByID deletes this deployment's server with this ID and its addresses. It returns nil when the API reports that
// the ID does not exist: twice, some seconds apart, unless the API has accepted the deletion.
func (p *Provider) DeleteByID(ctx context.Context, id string, why fleet.Reason) error {
	s, err := p.deletion.prepareDelete(ctx, id)
	switch {
	case errors.Is(err, errNotOurs):
		return nil
	case errors.Is(err, fleet.ErrNotFound):
		err = p.deletion.confirmMissing(ctx, s.ID)
	case err == nil:
		err = p.deletion.delete(ctx, s, why)
	}
	if err != nil {
		return fmt.Errorf("delete server %s: %w", id, err)
	}
	return nil
}

func (d *deleter) delete(ctx context.Context, s schema.Server, why fleet.Reason) error {
	if s.Status == string(hcloud.ServerStatusDeleting) {
		return d.awaitGone(ctx, s.ID)
	}
	d.addresses.claimAddresses(ctx, s)
	d.servers.dropState(s.ID)
	out, _, err := call[schema.ServerDeleteResponse](ctx, d.api, request{method: http.MethodDelete, path: formatPath("/servers/%d", s.ID)})
	switch {
	case errors.Is(err, fleet.ErrNotFound):
		return d.confirmMissing(ctx, s.ID)
	case err != nil:
		return err
	case out.Action.Status == "error":
		return fmt.Errorf("%w: %s", fleet.ErrBusy, serverState{}.explainFailure(&out.Action).detail)
	}
	d.cfg.Log.Info().Str("vm", s.Name).Int64("server", s.ID).Str("reason", string(why)).Msg("server deletion accepted")
	return d.awaitGone(ctx, s.ID)
}

// confirmMissing returns nil if a server that was not found a moment ago is still not found.
func (d *deleter) confirmMissing(ctx context.Context, id int64) error {
	_, err := d.power.rereadServer(ctx, id)
	switch {
	case errors.Is(err, fleet.ErrNotFound):
		return nil
	case err == nil:
		err = fmt.Errorf("%w: it was not found, but exists", fleet.ErrBusy)
	}
	return err
}

func (d *deleter) awaitGone(ctx context.Context, id int64) error {
	gone := false
	err := d.power.poll(ctx, waitGone, goneTimeout, func() (bool, error) {
		_, err := d.servers.byID(ctx, id)
		if gone = errors.Is(err, fleet.ErrNotFound); gone {
			err = nil
		}
		return gone, err
	})
	if err == nil && !gone {
		err = fmt.Errorf("%w: it is still being deleted", fleet.ErrBusy)
	}
	return err
}

// prepareDelete returns this deployment's server with this ID. It makes a request unless the cache shows that the
// server is this deployment's and that its addresses are deleted with it, so that no preparation is necessary.
func (d *deleter) prepareDelete(ctx context.Context, id string) (schema.Server, error) {
	if number, err := strconv.ParseInt(id, 10, 64); err == nil {
		s, ok := d.servers.recentServer(number)
		if ok && s.Status != string(hcloud.ServerStatusDeleting) && d.addresses.areAutoDeleted(s) {
			return s, nil
		}
	}
	return d.servers.ownServerByID(ctx, id)
}
