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

// Rebuild turns the server named from into the VM of spec. One call changes name and labels before the disk is rebuilt,
// so that it never appears as another VM. A label records that the disk is not yet the new VM's; until then it is
// StateCreating. spec.Offer is ignored. Rebuild may be repeated after any failure and repeats no completed step.
func (p *Provider) Rebuild(ctx context.Context, from string, spec fleet.Spec) (fleet.VM, error) {
	vm, err := p.orders.rebuild(ctx, from, spec)
	if err != nil {
		return fleet.VM{}, fmt.Errorf("rebuild VM %s as %s: %w", from, spec.Name, err)
	}
	return vm, nil
}

func (o *orderer) rebuild(ctx context.Context, from string, spec fleet.Spec) (fleet.VM, error) {
	switch {
	case len(spec.UserData) == 0: // the API would reuse the previous ones
		return fleet.VM{}, fmt.Errorf("%w: no user data", fleet.ErrInvalid)
	case len(spec.UserData) > MaxUserData:
		return fleet.VM{}, fmt.Errorf("%w: %d bytes of user data, at most %d", fleet.ErrInvalid, len(spec.UserData), MaxUserData)
	case from == spec.Name:
		return fleet.VM{}, fmt.Errorf("%w: it needs a new name", fleet.ErrInvalid)
	}
	if err := checkLabels(o.withDeploymentLabel(spec.Labels)); err != nil {
		return fleet.VM{}, err
	}
	s, err := o.servers.serverByName(ctx, spec.Name)
	if err != nil {
		return fleet.VM{}, err
	}
	if s != nil {
		if err := checkLabelsMatch(s.Labels, o.withDeploymentLabel(spec.Labels)); err != nil {
			return fleet.VM{}, err
		}
	} else if s, err = o.renameServer(ctx, from, spec); err != nil {
		return fleet.VM{}, err
	}
	if err := o.rebuildDisk(ctx, *s, spec); err != nil {
		return fleet.VM{}, err
	}
	return o.servers.convertServer(ctx, *s)
}

func (o *orderer) renameServer(ctx context.Context, from string, spec fleet.Spec) (*schema.Server, error) {
	s, err := o.servers.ownServerByName(ctx, from)
	if err != nil {
		return nil, err
	}
	actions, err := o.actions(ctx, s.ID)
	if err != nil {
		return nil, err
	}
	labels := o.creationLabels(spec.Labels)
	labels[labelRebuild] = "0"
	if len(actions) > 0 {
		labels[labelRebuild] = strconv.FormatInt(actions[0].ID, 10)
	}
	o.servers.dropState(s.ID)
	out, _, err := call[schema.ServerUpdateResponse](ctx, o.api, request{
		method: http.MethodPut, path: formatPath("/servers/%d", s.ID), body: schema.ServerUpdateRequest{Name: spec.Name, Labels: &labels},
	})
	switch {
	case errors.Is(err, errExists):
		return nil, fmt.Errorf("%w: %s", fleet.ErrNameTaken, spec.Name)
	case err != nil:
		return nil, err
	case out.Server.ID != s.ID || out.Server.Name != spec.Name:
		return nil, fmt.Errorf("%w: the response names another server", fleet.ErrUnknownOutcome)
	}
	o.cfg.Log.Info().Str("vm", spec.Name).Str("from", from).Int64("server", s.ID).Msg("server renamed")
	return &out.Server, nil
}

// rebuildDisk orders the fresh disk, unless that was done since the server was renamed.
func (o *orderer) rebuildDisk(ctx context.Context, s schema.Server, spec fleet.Spec) error {
	after, err := strconv.ParseInt(s.Labels[labelRebuild], 10, 64)
	if err != nil {
		return nil // it was ordered under this name
	}
	actions, err := o.actions(ctx, s.ID)
	if err != nil {
		return err
	}
	if done := newestAction(actions, "rebuild_server"); done != nil && done.ID > after {
		if done.Status == "error" {
			return fmt.Errorf("%w: %s", fleet.ErrEnded, serverState{}.explainFailure(done).detail)
		}
		return nil
	}
	o.servers.dropState(s.ID)
	_, _, err = call[schema.ServerActionRebuildResponse](ctx, o.api, request{
		method: http.MethodPost, path: formatPath("/servers/%d/actions/rebuild", s.ID),
		body: schema.ServerActionRebuildRequest{Image: o.image(spec.Image), UserData: hcloud.Ptr(string(spec.UserData))},
	})
	if errors.Is(err, fleet.ErrNotFound) {
		err = fmt.Errorf("%w: %w", fleet.ErrInvalid, err)
	}
	return err
}
