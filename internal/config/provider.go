package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/errand-bot/errand/state/vm"
)

// Values of the setting `provider`.
const (
	ProviderLocal   = "local"   // sandboxes on this host
	ProviderHetzner = "hetzner" // VMs in Hetzner Cloud
)

// A provider describes a value of the setting `provider`. All decisions of this package that depend on it are made by
// these fields; package server has the constructor of each.
type provider struct {
	// name is the value of the setting, and the key of the provider's section if it has one.
	name string
	// billed means that VMs cost money, so that the limits on their cost and number per hour apply.
	billed bool
	// baseImages means that VMs can be created from baked images.
	baseImages bool
	// problems checks the provider's section; nil if it has none, or one that is always checked.
	problems func(Config, *report)
	// secrets returns the secrets of the section by their keys; nil if it has none. A secret that is not listed is
	// neither read nor redacted.
	secrets func(*Config) map[string]*Secret
	// endpoint returns the address of the provider's API, which secrets may be written for as `value:TEXT` if it is
	// on this host; nil if it has none.
	endpoint func(Config) string
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
		secrets:    func(c *Config) map[string]*Secret { return map[string]*Secret{"hetzner.token": &c.Hetzner.Token} },
		endpoint:   func(c Config) string { return c.Hetzner.Endpoint },
		warnings:   func(c Config) []string { return c.Hetzner.warnings(len(c.Bake) > 0) },
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
		MicroDay:   toMicro(c.Limits.VMCostPerDay),
		MicroMonth: toMicro(c.Limits.VMCostPerMonth),
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

// resolve reads the secrets of the provider's section.
func (p provider) resolve(c *Config, r *report, env func(string) (string, bool)) {
	if p.secrets == nil {
		return
	}
	local := p.endpoint != nil && isLoopback(p.endpoint(*c))
	for key, secret := range p.secrets(c) {
		r.fail(key, secret.resolve(env, local))
	}
}

// hasSecrets reports whether the provider's section names the source of a secret.
func (p provider) hasSecrets(c Config) bool {
	if p.secrets == nil {
		return false
	}
	for _, secret := range p.secrets(&c) {
		if secret.Set() {
			return true
		}
	}
	return false
}

// Warnings returns settings that are valid but probably not intended.
func (c Config) Warnings() (list []string) {
	p, _ := c.provider()
	var withImages []string
	for _, other := range providers {
		if other.baseImages {
			withImages = append(withImages, "`provider: "+other.name+"`")
		}
		if other.name != c.Provider && other.hasSecrets(c) {
			list = append(list, fmt.Sprintf("%s: the section is not used unless `provider: %[1]s` is written", other.name))
		}
	}
	if !p.baseImages && len(c.Bake) > 0 {
		list = append(list, "bake: base images are for "+strings.Join(withImages, " or ")+"; nothing is baked")
	}
	if p.warnings != nil {
		list = append(list, p.warnings(c)...)
	}
	return list
}

// toMicro returns an amount of money in millionths.
func toMicro(amount float64) int64 { return int64(amount*1e6 + 0.5) }
