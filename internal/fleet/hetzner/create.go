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

// An orderer orders servers, and rebuilds existing ones for another VM.
type orderer struct {
	*api
	servers       *servers
	prerequisites *prerequisites
}

// Create adopts the server of this name and these labels, or orders one of spec.Offer, once. With spec.First it only
// looks for an existing one if the API reports that the name is taken. It does not wait: the VM is StateCreating, and
// List and Get report when it runs. After fleet.ErrUnknownOutcome the order may still appear; calling again some
// seconds later finds it.
func (p *Provider) Create(ctx context.Context, spec fleet.Spec) (fleet.VM, error) {
	vm, err := p.orders.create(ctx, spec)
	if err != nil {
		return fleet.VM{}, fmt.Errorf("create VM %s: %w", spec.Name, err)
	}
	return vm, nil
}

func (o *orderer) create(ctx context.Context, spec fleet.Spec) (fleet.VM, error) {
	var s *schema.Server
	var err error
	if !spec.First { // names are unique in a project: even with a wrong First no second server is created
		s, err = o.servers.serverByName(ctx, spec.Name)
	}
	if err != nil {
		return fleet.VM{}, err
	}
	if s != nil {
		return o.adoptServer(ctx, *s, spec)
	}
	if err := o.checkSpec(spec); err != nil {
		return fleet.VM{}, err
	}
	made, err := o.placeOrder(ctx, spec)
	if errors.Is(err, errExists) {
		// Another caller was faster, or an order whose response was lost has taken effect.
		if s, err = o.servers.serverByName(ctx, spec.Name); err != nil {
			return fleet.VM{}, err
		}
		if s == nil {
			return fleet.VM{}, fmt.Errorf("%w: the name is taken, but no server has it", fleet.ErrUnknownOutcome)
		}
		return o.adoptServer(ctx, *s, spec)
	}
	if err != nil {
		return fleet.VM{}, err
	}
	o.cfg.Log.Info().Str("vm", spec.Name).Int64("server", made.ID).Str("type", spec.Offer.Type).Str("location", spec.Offer.Location).Msg("server ordered")
	return o.servers.convertServer(ctx, made)
}

func (o *orderer) adoptServer(ctx context.Context, s schema.Server, spec fleet.Spec) (fleet.VM, error) {
	if err := checkLabelsMatch(s.Labels, o.withDeploymentLabel(spec.Labels)); err != nil {
		return fleet.VM{}, err
	}
	vm, err := o.servers.convertServer(ctx, s)
	if err == nil && vm.State == fleet.StateEnded {
		err = fmt.Errorf("%w: %s: %s", fleet.ErrEnded, vm.Ended, vm.Detail)
	}
	if err != nil {
		return fleet.VM{}, err
	}
	return vm, nil
}

func (o *orderer) checkSpec(spec fleet.Spec) error {
	if spec.Offer.Type == "" || spec.Offer.Location == "" {
		return fmt.Errorf("%w: no type and location to order", fleet.ErrInvalid)
	}
	if len(spec.UserData) > MaxUserData {
		return fmt.Errorf("%w: %d bytes of user data, at most %d", fleet.ErrInvalid, len(spec.UserData), MaxUserData)
	}
	return checkLabels(o.withDeploymentLabel(spec.Labels))
}

// placeOrder places the order. If it is refused because the key or firewall is missing, order recreates them once.
func (o *orderer) placeOrder(ctx context.Context, spec fleet.Spec) (schema.Server, error) {
	g, fresh, err := o.prerequisites.getShared(ctx)
	if err != nil {
		return schema.Server{}, err
	}
	made, err := o.postOrder(ctx, spec, g)
	gone := errors.Is(err, fleet.ErrNotFound) || errors.Is(err, fleet.ErrInvalid)
	if gone && !fresh {
		o.prerequisites.invalidate()
		again, _, groundErr := o.prerequisites.getShared(ctx)
		if groundErr != nil {
			return schema.Server{}, groundErr
		}
		if again != g {
			made, err = o.postOrder(ctx, spec, again)
		}
	}
	if errors.Is(err, fleet.ErrNotFound) {
		err = fmt.Errorf("%w: %w", fleet.ErrInvalid, err) // an image, a network: it will not reappear
	}
	return made, err
}

func (o *orderer) postOrder(ctx context.Context, spec fleet.Spec, g sharedResources) (schema.Server, error) {
	labels := o.creationLabels(spec.Labels)
	body := schema.ServerCreateRequest{
		Name: spec.Name, ServerType: schema.IDOrName{Name: spec.Offer.Type}, Location: spec.Offer.Location,
		Image: o.image(spec.Image), SSHKeys: []int64{g.key}, UserData: string(spec.UserData), Labels: &labels,
		StartAfterCreate: hcloud.Ptr(true),
		PublicNet:        &schema.ServerCreatePublicNet{EnableIPv4: o.cfg.IPv4, EnableIPv6: o.cfg.IPv6},
	}
	firewall := g.firewall
	if o.opensNetwork(spec.Image) || spec.Labels[fleet.LabelKind] == fleet.ImageBaking {
		firewall = g.open
	}
	if firewall != 0 {
		body.Firewalls = []schema.ServerCreateFirewalls{{Firewall: firewall}}
	}
	if o.cfg.Network != 0 {
		body.Networks = []int64{o.cfg.Network}
	}
	out, _, err := call[schema.ServerCreateResponse](ctx, o.api, request{method: http.MethodPost, path: "/servers", body: body})
	if err == nil && (out.Server.ID == 0 || out.Server.Name != spec.Name) {
		err = fmt.Errorf("%w: the response names no server", fleet.ErrUnknownOutcome)
	}
	return out.Server, err
}

// image identifies a base image by number or name.
func (o *orderer) image(name string) schema.IDOrName {
	if name == "" {
		name = o.cfg.Image
	}
	if id, err := strconv.ParseInt(name, 10, 64); err == nil {
		return schema.IDOrName{ID: id}
	}
	return schema.IDOrName{Name: name}
}
