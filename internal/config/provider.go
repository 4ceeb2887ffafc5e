package config

import (
	"slices"
	"strings"

	"github.com/errand-bot/errand/state/vm"
)

// Values of the setting `provider`.
const (
	ProviderLocal   = "local"   // sandboxes on this host
	ProviderHetzner = "hetzner" // VMs in Hetzner Cloud
)

// A provider describes a value of the setting `provider`. All decisions that depend on it are made by these fields;
// package server has the constructor of each.
type provider struct {
	name string
	// billed means that VMs cost money, so that the limits on their cost and number per hour apply.
	billed bool
	// baseImages means that VMs can be created from baked images.
	baseImages bool
	// problems checks the provider's section; nil if it has none, or one that is always checked.
	problems func(Config, *report)
	// resolve reads the secrets of the section; nil if it has none.
	resolve func(c *Config, r *report, env func(string) (string, bool))
	// warnings returns settings of the section that are probably not intended; nil if there are none.
	warnings func(Config) []string
}

// providers is the table of all providers.
var providers = []provider{
	{name: ProviderLocal},
	{
		name:       ProviderHetzner,
		billed:     true,
		baseImages: true,
		problems:   func(c Config, r *report) { c.Hetzner.problems(r) },
		resolve: func(c *Config, r *report, env func(string) (string, bool)) {
			r.fail("hetzner.token", c.Hetzner.Token.resolve(env, isLoopback(c.Hetzner.Endpoint)))
		},
		warnings: func(c Config) []string { return c.Hetzner.warnings(len(c.Bake) > 0) },
	},
}

// ProviderNames returns the values that the setting `provider` may have.
func ProviderNames() []string {
	names := make([]string, len(providers))
	for i, p := range providers {
		names[i] = p.name
	}
	return names
}

// provider returns the configured provider, or the zero value if the name is unknown.
func (c Config) provider() (p provider, ok bool) {
	i := slices.IndexFunc(providers, func(p provider) bool { return p.name == c.Provider })
	if i < 0 {
		return provider{}, false
	}
	return providers[i], true
}

// VMCaps returns the limits on VMs.
func (c Config) VMCaps() vm.Caps {
	if p, _ := c.provider(); !p.billed {
		return vm.Caps{VMs: c.Limits.VMs}
	}
	return vm.Caps{
		VMs:        c.Limits.VMs,
		PerHour:    c.Limits.VMCreates,
		PerTask:    c.Policy().VMHours,
		MicroDay:   Micro(c.Limits.VMCostPerDay),
		MicroMonth: Micro(c.Limits.VMCostPerMonth),
	}
}

// providerProblems checks the choice of the provider and its section.
func (c Config) providerProblems(r *report) {
	p, ok := c.provider()
	r.unless(ok, "provider", "%q: write %s", c.Provider, strings.Join(ProviderNames(), " or "))
	if p.problems != nil {
		p.problems(c, r)
	}
}

// Warnings returns settings that are valid but probably not intended.
func (c Config) Warnings() (list []string) {
	p, _ := c.provider()
	if !p.baseImages && len(c.Bake) > 0 {
		list = append(list, "bake: base images are for `provider: hetzner`; nothing is baked")
	}
	if c.Provider != ProviderHetzner && c.Hetzner.Token.Set() {
		list = append(list, "hetzner: the section is not used unless `provider: hetzner` is written")
	}
	if p.warnings != nil {
		list = append(list, p.warnings(c)...)
	}
	return list
}
