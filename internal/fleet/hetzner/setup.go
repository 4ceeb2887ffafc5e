package hetzner

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"
	"github.com/hetznercloud/hcloud-go/v2/hcloud/schema"
	"golang.org/x/crypto/ssh"

	"github.com/errand-bot/errand/internal/fleet"
)

// prerequisites finds or creates the key and firewalls that servers are ordered with.
type prerequisites struct {
	*api

	mu     sync.Mutex
	shared *sharedResources // nil until the key and firewall are known
}

// sharedResources holds the IDs of the resources that every server needs; firewalls are 0 without a public address.
// The open firewall allows all outgoing traffic: servers have it while an image is baked on them, and during a first
// boot that installs packages. It is the usual one if that restricts nothing.
type sharedResources struct {
	key, firewall, open int64
}

// firewallSpec is the intended state of a firewall.
type firewallSpec struct {
	name  string
	rules []schema.FirewallRuleRequest
}

// intendedFirewalls returns the deployment's firewalls: the usual one, and the open one if it differs.
func (q *prerequisites) intendedFirewalls() (usual firewallSpec, open *firewallSpec) {
	usual = firewallSpec{"errand-" + q.cfg.Deployment, q.rules(q.cfg.Egress == EgressTether)}
	if q.cfg.Egress == EgressTether {
		open = &firewallSpec{usual.name + "-baking", q.rules(false)} // the name is older than its other use
	}
	return usual, open
}

// getShared returns the ground; fresh states that it was read just now.
func (q *prerequisites) getShared(ctx context.Context) (g sharedResources, fresh bool, err error) {
	q.mu.Lock()
	known := q.shared
	q.mu.Unlock()
	if known != nil {
		return *known, false, nil
	}
	if g.key, err = q.findOrMake(ctx, "client key", q.findKey, q.makeKey); err != nil {
		return sharedResources{}, false, err
	}
	if q.cfg.IPv4 || q.cfg.IPv6 {
		usual, open := q.intendedFirewalls()
		if g.firewall, err = q.firewall(ctx, usual); err != nil {
			return sharedResources{}, false, err
		}
		if g.open = g.firewall; open != nil {
			if g.open, err = q.firewall(ctx, *open); err != nil {
				return sharedResources{}, false, err
			}
		}
	}
	q.mu.Lock()
	q.shared = &g
	q.mu.Unlock()
	return g, true, nil
}

// firewall finds or creates a firewall.
func (q *prerequisites) firewall(ctx context.Context, w firewallSpec) (int64, error) {
	find := func(ctx context.Context) (int64, error) { return q.findFirewall(ctx, w) }
	return q.findOrMake(ctx, "firewall", find, func(ctx context.Context) (int64, error) { return q.makeFirewall(ctx, w) })
}

// invalidate makes the next call read the ground again.
func (q *prerequisites) invalidate() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.shared = nil
}

// findOrMake finds a resource or creates it. If it was created by another process meanwhile, or the response was lost,
// it is found again.
func (q *prerequisites) findOrMake(ctx context.Context, what string, find, make func(context.Context) (int64, error)) (int64, error) {
	id, err := find(ctx)
	if err == nil && id == 0 {
		id, err = make(ctx)
		if errors.Is(err, errExists) || errors.Is(err, fleet.ErrUnknownOutcome) {
			if found, findErr := find(ctx); findErr == nil && found != 0 {
				id, err = found, nil
			}
		}
	}
	switch {
	case errors.Is(err, fleet.ErrUnknownOutcome): // not about a server: the caller may just retry
		return 0, fmt.Errorf("%s: %w: %s", what, fleet.ErrBusy, err.Error())
	case err != nil:
		return 0, fmt.Errorf("%s: %w", what, err)
	}
	return id, nil
}

func (q *prerequisites) findKey(ctx context.Context) (int64, error) {
	print := ssh.FingerprintLegacyMD5(q.cfg.ClientKey)
	keys, err := q.keys(ctx, url.Values{"fingerprint": {print}}, false)
	for _, k := range keys {
		if k.Fingerprint == print {
			return k.ID, err
		}
	}
	return 0, err
}

func (q *prerequisites) keys(ctx context.Context, query url.Values, low bool) ([]schema.SSHKey, error) {
	return listAll(ctx, q.api, request{method: http.MethodGet, path: "/ssh_keys", query: query, low: low},
		func(r schema.SSHKeyListResponse) []schema.SSHKey { return r.SSHKeys }, func(k schema.SSHKey) int64 { return k.ID })
}

func (q *prerequisites) makeKey(ctx context.Context) (int64, error) {
	labels := q.withDeploymentLabel(nil)
	key := schema.SSHKeyCreateRequest{
		Name:      "errand-" + q.cfg.Deployment + "-" + strings.ReplaceAll(ssh.FingerprintLegacyMD5(q.cfg.ClientKey), ":", "")[:8],
		PublicKey: strings.TrimSpace(string(ssh.MarshalAuthorizedKey(q.cfg.ClientKey))),
		Labels:    &labels,
	}
	out, _, err := call[schema.SSHKeyCreateResponse](ctx, q.api, request{method: http.MethodPost, path: "/ssh_keys", body: key})
	return out.SSHKey.ID, err
}

func (q *prerequisites) firewalls(ctx context.Context, query url.Values, low bool) ([]schema.Firewall, error) {
	return listAll(ctx, q.api, request{method: http.MethodGet, path: "/firewalls", query: query, low: low},
		func(r schema.FirewallListResponse) []schema.Firewall { return r.Firewalls }, func(f schema.Firewall) int64 { return f.ID })
}

// findFirewall finds this deployment's firewall and corrects its rules if they differ.
func (q *prerequisites) findFirewall(ctx context.Context, w firewallSpec) (int64, error) {
	found, err := q.firewalls(ctx, url.Values{"name": {w.name}}, false)
	if err != nil {
		return 0, err
	}
	for _, f := range found {
		if f.Name != w.name {
			continue
		}
		if f.Labels[fleet.LabelDeployment] != q.cfg.Deployment {
			return 0, fmt.Errorf("%w: a firewall %s exists that is not this deployment's", fleet.ErrInvalid, f.Name)
		}
		if sameRules(f.Rules, w.rules) {
			return f.ID, nil
		}
		_, _, err := call[nothing](ctx, q.api, request{
			method: http.MethodPost, path: formatPath("/firewalls/%d/actions/set_rules", f.ID),
			body: schema.FirewallActionSetRulesRequest{Rules: w.rules},
		})
		return f.ID, err
	}
	return 0, nil
}

func (q *prerequisites) makeFirewall(ctx context.Context, w firewallSpec) (int64, error) {
	labels := q.withDeploymentLabel(nil)
	body := schema.FirewallCreateRequest{Name: w.name, Labels: &labels, Rules: w.rules}
	out, _, err := call[schema.FirewallCreateResponse](ctx, q.api, request{method: http.MethodPost, path: "/firewalls", body: body})
	return out.Firewall.ID, err
}

// rules returns the firewall's rules. Incoming traffic is dropped unless a rule allows it; outgoing traffic is allowed
// unless there is any rule for it.
func (q *prerequisites) rules(shut bool) []schema.FirewallRuleRequest {
	rules := []schema.FirewallRuleRequest{{
		Direction: "in", Protocol: "tcp", Port: hcloud.Ptr("22"), SourceIPs: q.cfg.SSHFrom, Description: hcloud.Ptr("errand's SSH"),
	}}
	if shut {
		rules = append(rules, schema.FirewallRuleRequest{ // an address reserved for documentation, so that nothing is allowed
			Direction: "out", Protocol: "tcp", Port: hcloud.Ptr("9"), DestinationIPs: []string{"192.0.2.1/32"},
			Description: hcloud.Ptr("nothing: this rule closes all the rest"),
		})
	}
	return rules
}

// sameRules compares the API's rules with the intended ones, ignoring the order.
func sameRules(has []schema.FirewallRule, want []schema.FirewallRuleRequest) bool {
	var a, b []string
	for _, r := range has {
		a = append(a, ruleText(r.Direction, r.Protocol, r.Port, r.SourceIPs, r.DestinationIPs))
	}
	for _, r := range want {
		b = append(b, ruleText(r.Direction, r.Protocol, r.Port, r.SourceIPs, r.DestinationIPs))
	}
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

func ruleText(direction, protocol string, port *string, from, to []string) string {
	from, to = slices.Sorted(slices.Values(from)), slices.Sorted(slices.Values(to))
	text := ""
	if port != nil {
		text = *port
	}
	return fmt.Sprint(direction, protocol, text, from, to)
}
