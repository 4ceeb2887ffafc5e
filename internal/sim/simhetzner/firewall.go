package simhetzner

import (
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud/schema"
)

const maxFirewallRules = 500

type firewall struct {
	id      int64
	name    string
	rules   []schema.FirewallRule
	labels  map[string]string
	created time.Time
}

func (f *firewall) about() (int64, string, time.Time, map[string]string) {
	return f.id, f.name, f.created, f.labels
}

func (s *Sim) wireFirewall(f *firewall) any {
	w := schema.Firewall{
		ID:        f.id,
		Name:      f.name,
		Labels:    f.labels,
		Created:   f.created.UTC().Truncate(time.Second),
		Rules:     f.rules,
		AppliedTo: []schema.FirewallResource{},
	}
	for _, sv := range s.protectedServers(f) {
		w.AppliedTo = append(w.AppliedTo, schema.FirewallResource{Type: "server", Server: &schema.FirewallResourceServer{ID: sv.id}})
	}
	return w
}

// protectedServers returns the servers that a firewall is applied to.
func (s *Sim) protectedServers(f *firewall) []*server {
	var found []*server
	for _, sv := range s.servers {
		if slices.Contains(sv.firewalls, f) {
			found = append(found, sv)
		}
	}
	_ = sortBy(found, nil) // without a sort order sortBy cannot fail
	return found
}

// checkRules converts rules to the form of responses.
func checkRules(in []schema.FirewallRuleRequest) ([]schema.FirewallRule, error) {
	if len(in) > maxFirewallRules {
		return nil, newFieldError("rules", "are too many")
	}
	out := []schema.FirewallRule{}
	for _, r := range in {
		nets := r.SourceIPs
		if r.Direction == "out" {
			nets = r.DestinationIPs
		}
		portly := r.Protocol == "tcp" || r.Protocol == "udp"
		switch {
		case r.Direction != "in" && r.Direction != "out":
			return nil, newFieldError("rules.direction", "has to be in or out")
		case !slices.Contains([]string{"tcp", "udp", "icmp", "esp", "gre"}, r.Protocol):
			return nil, newFieldError("rules.protocol", "is unknown")
		case portly != (r.Port != nil && *r.Port != ""):
			return nil, newFieldError("rules.port", "is needed for tcp and udp and for nothing else")
		case len(nets) == 0:
			return nil, newFieldError("rules", "a rule needs networks")
		}
		for _, n := range nets {
			p, err := netip.ParsePrefix(n)
			if err != nil || p != p.Masked() {
				return nil, newFieldError("rules", "%q is no network", n)
			}
		}
		rule := schema.FirewallRule(r)
		if rule.SourceIPs == nil {
			rule.SourceIPs = []string{}
		}
		if rule.DestinationIPs == nil {
			rule.DestinationIPs = []string{}
		}
		out = append(out, rule)
	}
	return out, nil
}

func listFirewalls(s *Sim, c *call) (answer, error) {
	return list(c, "firewalls", s.firewalls, nil, s.wireFirewall)
}

func getFirewall(s *Sim, c *call) (answer, error) {
	f, err := pathObject(c, "firewall", s.firewalls)
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusOK, map[string]any{"firewall": s.wireFirewall(f)}}, nil
}

func createFirewall(s *Sim, c *call) (answer, error) {
	req, err := decode[schema.FirewallCreateRequest](c)
	if err != nil {
		return answer{}, err
	}
	if req.Name == "" {
		return answer{}, newFieldError("name", "is needed")
	}
	if err := checkNameFree(s.firewalls, "firewall", req.Name, 0); err != nil {
		return answer{}, err
	}
	labels, err := checkLabels(req.Labels)
	if err != nil {
		return answer{}, err
	}
	rules, err := checkRules(req.Rules)
	if err != nil {
		return answer{}, err
	}
	on, err := s.selectedServers(req.ApplyTo)
	if err != nil {
		return answer{}, err
	}
	f := &firewall{id: s.nextID(), name: req.Name, rules: rules, labels: labels, created: c.now}
	s.firewalls[f.id] = f
	actions := []*action{s.startAction(c, plan{command: "set_firewall_rules", took: s.cfg.Took.Other, on: firewallRef(f)})}
	actions = append(actions, s.applyFirewall(c, f, on)...)
	return answer{http.StatusCreated, map[string]any{"firewall": s.wireFirewall(f), "actions": s.wireActions(actions...)}}, nil
}

func firewallRef(f *firewall) []schema.ActionResourceReference {
	return []schema.ActionResourceReference{{ID: f.id, Type: "firewall"}}
}

// selectedServers returns the selected servers. Label selectors are evaluated once.
func (s *Sim) selectedServers(in []schema.FirewallResource) ([]*server, error) {
	var on []*server
	for _, r := range in {
		switch {
		case r.Type == "server" && r.Server != nil:
			sv := s.servers[r.Server.ID]
			if sv == nil {
				return nil, newError("firewall_resource_not_found", "server %d not found", r.Server.ID)
			}
			on = append(on, sv)
		case r.Type == "label_selector" && r.LabelSelector != nil:
			sel, err := parseSelector(r.LabelSelector.Selector)
			if err != nil {
				return nil, err
			}
			for _, sv := range s.servers {
				if sel.matches(sv.labels) {
					on = append(on, sv)
				}
			}
		default:
			return nil, newFieldError("apply_to", "a resource has to be a server or a label selector")
		}
	}
	return on, nil
}

func (s *Sim) applyFirewall(c *call, f *firewall, on []*server) []*action {
	var actions []*action
	for _, sv := range on {
		refs := append(firewallRef(f), schema.ActionResourceReference{ID: sv.id, Type: "server"})
		a := s.startAction(c, plan{command: "apply_firewall", took: s.cfg.Took.Other, on: refs})
		if !slices.Contains(sv.firewalls, f) {
			sv.firewalls = append(sv.firewalls, f)
			sv.applying[f.id] = a
		}
		actions = append(actions, a)
	}
	return actions
}

func updateFirewall(s *Sim, c *call) (answer, error) {
	f, err := pathObject(c, "firewall", s.firewalls)
	if err != nil {
		return answer{}, err
	}
	req, err := decode[schema.FirewallUpdateRequest](c)
	if err != nil {
		return answer{}, err
	}
	if req.Name != nil {
		if err := checkNameFree(s.firewalls, "firewall", *req.Name, f.id); err != nil {
			return answer{}, err
		}
		f.name = *req.Name
	}
	if req.Labels != nil {
		if f.labels, err = checkLabels(req.Labels); err != nil {
			return answer{}, err
		}
	}
	return answer{http.StatusOK, map[string]any{"firewall": s.wireFirewall(f)}}, nil
}

func deleteFirewall(s *Sim, c *call) (answer, error) {
	f, err := pathObject(c, "firewall", s.firewalls)
	if err != nil {
		return answer{}, err
	}
	if len(s.protectedServers(f)) > 0 {
		return answer{}, newError("resource_in_use", "firewall is still in use")
	}
	delete(s.firewalls, f.id)
	return answer{status: http.StatusNoContent}, nil
}

// actFirewall serves POST /firewalls/{id}/actions/{act}.
func actFirewall(s *Sim, c *call) (answer, error) {
	f, err := pathObject(c, "firewall", s.firewalls)
	if err != nil {
		return answer{}, err
	}
	var actions []*action
	switch c.act {
	case "set_rules":
		req, err := decode[schema.FirewallActionSetRulesRequest](c)
		if err != nil {
			return answer{}, err
		}
		if f.rules, err = checkRules(req.Rules); err != nil {
			return answer{}, err
		}
		actions = append(actions, s.startAction(c, plan{command: "set_firewall_rules", took: s.cfg.Took.Other, on: firewallRef(f)}))
	case "apply_to_resources":
		req, err := decode[schema.FirewallActionApplyToResourcesRequest](c)
		if err != nil {
			return answer{}, err
		}
		on, err := s.selectedServers(req.ApplyTo)
		if err != nil {
			return answer{}, err
		}
		actions = s.applyFirewall(c, f, on)
	case "remove_from_resources":
		req, err := decode[schema.FirewallActionRemoveFromResourcesRequest](c)
		if err != nil {
			return answer{}, err
		}
		on, err := s.selectedServers(req.RemoveFrom)
		if err != nil {
			return answer{}, err
		}
		for _, sv := range on {
			done := func(_ time.Time, failed bool) {
				if !failed {
					sv.firewalls = slices.DeleteFunc(sv.firewalls, func(g *firewall) bool { return g == f })
				}
			}
			actions = append(actions, s.startAction(c, plan{command: "remove_firewall", took: s.cfg.Took.Other, on: firewallRef(f), done: done}))
		}
	default:
		return answer{}, newError("not_found", "there is no action %s here", c.act)
	}
	return answer{http.StatusCreated, map[string]any{"actions": s.wireActions(actions...)}}, nil
}
