package hetzner

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud/schema"
	"golang.org/x/crypto/ssh"

	"github.com/errand-bot/errand/internal/fleet"
)

// An auditor lists and deletes resources that are neither a VM nor an image of this deployment.
type auditor struct {
	*api
	servers       *servers
	images        *images
	addresses     *addresses
	prerequisites *prerequisites
}

// Kinds of unmanaged resources.
const (
	unmanagedServer   = "server"
	unmanagedVolume   = "volume"
	unmanagedAddress  = "primary_ip"
	unmanagedKey      = "ssh_key"
	unmanagedFirewall = "firewall"
	unmanagedImage    = "foreign_image" // fleet.ReapImage stands for the list of this deployment's images
)

// ListUnmanaged lists the project's resources that are neither a VM nor an image of this deployment nor used by one:
// unused addresses, outdated keys and firewalls, volumes, and everything without this deployment's label. A kind whose
// list fails is omitted and named in a *fleet.UnlistedError.
func (p *Provider) ListUnmanaged(ctx context.Context) ([]fleet.UnmanagedResource, error) {
	var out []fleet.UnmanagedResource
	failed := map[string]error{}
	for _, l := range []struct {
		kind string
		list func(context.Context) ([]fleet.UnmanagedResource, error)
	}{
		{unmanagedServer, p.audit.unmanagedServers}, {unmanagedImage, p.audit.unmanagedImages},
		{unmanagedAddress, p.audit.unmanagedAddresses}, {unmanagedVolume, p.audit.unmanagedVolumes},
		{unmanagedKey, p.audit.unmanagedKeys}, {unmanagedFirewall, p.audit.unmanagedFirewalls},
	} {
		found, err := l.list(ctx)
		if err != nil {
			failed[l.kind] = err
			continue
		}
		out = append(out, found...)
	}
	if len(failed) > 0 {
		return out, fmt.Errorf("list unmanaged resources: %w", &fleet.UnlistedError{Kinds: failed})
	}
	return out, nil
}

func (u *auditor) newUnmanaged(kind string, id int64, name string, labels map[string]string, created time.Time) fleet.UnmanagedResource {
	return fleet.UnmanagedResource{
		Kind: kind, ID: strconv.FormatInt(id, 10), Name: name, Labels: labels, CreatedAt: created.UTC(),
		HasOwnLabel: labels[fleet.LabelDeployment] == u.cfg.Deployment,
	}
}

func (u *auditor) unmanagedServers(ctx context.Context) (out []fleet.UnmanagedResource, err error) {
	found, err := u.servers.list(ctx, nil, true)
	for _, s := range found {
		if stray := u.newUnmanaged(unmanagedServer, s.ID, s.Name, s.Labels, s.Created); !stray.HasOwnLabel {
			out = append(out, stray)
		}
	}
	return out, err
}

func (u *auditor) unmanagedImages(ctx context.Context) (out []fleet.UnmanagedResource, err error) {
	found, err := u.images.list(ctx, nil, true)
	for _, i := range found {
		created := time.Time{}
		if i.Created != nil {
			created = *i.Created
		}
		if stray := u.newUnmanaged(unmanagedImage, i.ID, i.Description, i.Labels, created); !stray.HasOwnLabel {
			out = append(out, stray)
		}
	}
	return out, err
}

func (u *auditor) unmanagedAddresses(ctx context.Context) (out []fleet.UnmanagedResource, err error) {
	found, err := listAll(ctx, u.api, request{method: http.MethodGet, path: "/primary_ips", low: true},
		func(r schema.PrimaryIPListResponse) []schema.PrimaryIP { return r.PrimaryIPs }, func(i schema.PrimaryIP) int64 { return i.ID })
	if err != nil {
		return nil, err
	}
	u.addresses.pruneUnclaimed(found)
	u.addresses.rememberList(found)
	for _, i := range found {
		if i.AssigneeID == nil || *i.AssigneeID == 0 {
			out = append(out, u.newUnmanaged(unmanagedAddress, i.ID, i.Name+" "+i.IP, u.addresses.labels(i), i.Created))
		}
	}
	return out, nil
}

func (u *auditor) unmanagedVolumes(ctx context.Context) (out []fleet.UnmanagedResource, err error) {
	found, err := listAll(ctx, u.api, request{method: http.MethodGet, path: "/volumes", low: true},
		func(r schema.VolumeListResponse) []schema.Volume { return r.Volumes }, func(v schema.Volume) int64 { return v.ID })
	for _, v := range found {
		out = append(out, u.newUnmanaged(unmanagedVolume, v.ID, v.Name, v.Labels, v.Created))
	}
	return out, err
}

func (u *auditor) unmanagedKeys(ctx context.Context) (out []fleet.UnmanagedResource, err error) {
	found, err := u.prerequisites.keys(ctx, nil, true)
	for _, k := range found {
		if k.Fingerprint != ssh.FingerprintLegacyMD5(u.cfg.ClientKey) {
			out = append(out, u.newUnmanaged(unmanagedKey, k.ID, k.Name, k.Labels, k.Created))
		}
	}
	return out, err
}

func (u *auditor) unmanagedFirewalls(ctx context.Context) (out []fleet.UnmanagedResource, err error) {
	found, err := u.prerequisites.firewalls(ctx, nil, true)
	usual, open := u.prerequisites.intendedFirewalls()
	for _, f := range found {
		used := f.Name == usual.name || open != nil && f.Name == open.name
		if stray := u.newUnmanaged(unmanagedFirewall, f.ID, f.Name, f.Labels, f.Created); !stray.HasOwnLabel || !used {
			out = append(out, stray)
		}
	}
	return out, err
}

// DeleteUnmanaged deletes this deployment's resource, according to the API's current data, not s. Servers and images
// have separate methods.
func (p *Provider) DeleteUnmanaged(ctx context.Context, s fleet.UnmanagedResource) error {
	if err := p.audit.delete(ctx, s); err != nil {
		return fmt.Errorf("delete %s %s: %w", s.Kind, s.ID, err)
	}
	return nil
}

func (u *auditor) delete(ctx context.Context, s fleet.UnmanagedResource) error {
	list := map[string]func(context.Context) ([]fleet.UnmanagedResource, error){
		unmanagedAddress: u.unmanagedAddresses, unmanagedVolume: u.unmanagedVolumes,
		unmanagedKey: u.unmanagedKeys, unmanagedFirewall: u.unmanagedFirewalls,
	}[s.Kind]
	collection := map[string]string{
		unmanagedAddress: "primary_ips", unmanagedVolume: "volumes", unmanagedKey: "ssh_keys", unmanagedFirewall: "firewalls",
	}[s.Kind]
	id, err := strconv.ParseInt(s.ID, 10, 64)
	if list == nil || err != nil {
		return fmt.Errorf("%w: not to be deleted like this", fleet.ErrInvalid)
	}
	found, err := list(ctx)
	if err != nil {
		return err
	}
	for _, now := range found {
		switch {
		case now.ID != s.ID:
			continue
		case !now.HasOwnLabel:
			return fmt.Errorf("%w: it is not this deployment's", fleet.ErrInvalid)
		}
		_, _, err := call[nothing](ctx, u.api, request{method: http.MethodDelete, path: "/" + collection + "/" + strconv.FormatInt(id, 10)})
		if errors.Is(err, fleet.ErrNotFound) {
			return nil
		}
		return err
	}
	return nil // deleted, or in use again
}
