package hetzner

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"
	"github.com/hetznercloud/hcloud-go/v2/hcloud/schema"

	"github.com/errand-bot/errand/internal/fleet"
)

// OpensNetwork implements [fleet.NetworkCloser]. With [EgressTether], servers are created with the open firewall if
// their first boot installs packages, which it does on all images but baked ones.
func (p *Provider) OpensNetwork(image string) bool { return p.opensNetwork(image) }

func (a *api) opensNetwork(image string) bool { return a.closesNetwork() && image == "" }

// closesNetwork reports whether firewalls restrict the outgoing traffic of servers.
func (a *api) closesNetwork() bool { return a.cfg.Egress == EgressTether && (a.cfg.IPv4 || a.cfg.IPv6) }

// CloseNetwork implements [fleet.NetworkCloser]: it replaces the open firewall of a server by the usual one. The error
// is fleet.ErrBusy until Hetzner reports that only the usual one applies. Servers on which an image is baked keep the
// open firewall.
func (p *Provider) CloseNetwork(ctx context.Context, id string) error {
	if !p.closesNetwork() {
		return nil
	}
	if err := p.orders.closeNetwork(ctx, id); err != nil {
		return fmt.Errorf("restrict the network of server %s: %w", id, err)
	}
	return nil
}

// closeChecks is how often CloseNetwork reads a server after changing its firewalls, which usually takes a second.
const closeChecks = 3

func (o *orderer) closeNetwork(ctx context.Context, id string) error {
	s, err := o.servers.ownServerByID(ctx, id)
	if err != nil || s.Labels[fleet.LabelKind] == fleet.ImageBaking {
		return err
	}
	g, _, err := o.prerequisites.getShared(ctx)
	if err != nil || isClosed(s, g) {
		return err
	}
	// The usual firewall is added first, because a server without any accepts SSH from everywhere.
	resource := []schema.FirewallResource{{Type: string(hcloud.FirewallResourceTypeServer), Server: &schema.FirewallResourceServer{ID: s.ID}}}
	if _, has := firewallStatus(s, g.firewall); !has {
		err := o.actOnFirewall(ctx, g.firewall, "apply_to_resources", schema.FirewallActionApplyToResourcesRequest{ApplyTo: resource})
		if errors.Is(err, fleet.ErrNotFound) {
			o.prerequisites.invalidate() // somebody deleted the firewall: the next attempt creates it
		}
		if err != nil {
			return err
		}
	}
	if _, has := firewallStatus(s, g.open); has {
		err := o.actOnFirewall(ctx, g.open, "remove_from_resources", schema.FirewallActionRemoveFromResourcesRequest{RemoveFrom: resource})
		if err != nil {
			return err
		}
	}
	for range closeChecks {
		if err := o.cfg.Sleep(ctx, min(recheckInterval, o.cfg.Tick)); err != nil {
			return err
		}
		if s, err = o.servers.byID(ctx, s.ID); err != nil || isClosed(s, g) {
			return err
		}
	}
	return fmt.Errorf("%w: Hetzner has not applied the firewall yet", fleet.ErrBusy)
}

// actOnFirewall requests an action of a firewall. Its outcome is read from the server.
func (o *orderer) actOnFirewall(ctx context.Context, id int64, act string, body any) error {
	_, _, err := call[nothing](ctx, o.api, request{
		method: http.MethodPost, path: "/firewalls/" + strconv.FormatInt(id, 10) + "/actions/" + act, body: body,
	})
	if errors.Is(err, fleet.ErrUnknownOutcome) {
		return nil
	}
	return err
}

// isClosed reports whether the usual firewall applies to a server, and the open one does not.
func isClosed(s schema.Server, g sharedResources) bool {
	status, _ := firewallStatus(s, g.firewall)
	_, open := firewallStatus(s, g.open)
	return status == string(hcloud.FirewallStatusApplied) && !open
}

// firewallStatus returns the status of a firewall of a server, such as applied or pending.
func firewallStatus(s schema.Server, id int64) (status string, has bool) {
	for _, f := range s.PublicNet.Firewalls {
		if f.ID == id {
			return f.Status, true
		}
	}
	return "", false
}
