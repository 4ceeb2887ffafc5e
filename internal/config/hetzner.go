package config

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Hetzner configures VMs of Hetzner Cloud. Give errand a project of its own there: what it finds in it
// and does not know is reported.
type Hetzner struct {
	// Token is the project's API token, for reading and writing, from the project's security settings.
	Token Secret `yaml:"token"`
	// Endpoint is the API's address.
	Endpoint string `yaml:"endpoint"`
	// Candidates are what is ordered, as TYPE/LOCATION by Hetzner's names, in this order: the first that can be had
	// and that suits the repository. Put the cheapest that is large enough first.
	Candidates []string `yaml:"candidates"`
	// Image is what VMs are made from where no base image was baked; Hetzner's name of it.
	Image string `yaml:"image"`
	// Setup is run as root by bash at the first boot of a VM that has no baked image: packages, tool chains,
	// the agent's program, without which no agent can run. Every such VM waits for it, five minutes with its boot;
	// what takes longer belongs into a base image, see bake.
	Setup string `yaml:"setup"`
	// SSHFrom are the address ranges that SSH is let in from, such as 203.0.113.7/32: write what this host's address is
	// for others. All unless set.
	SSHFrom []string `yaml:"ssh_from"`
	// Egress is one of open and tether. With tether the firewall is shut, and a VM reaches only what errand
	// lets it through to: the model, its repository and egress.allow. It needs a base image, baked while this is
	// open.
	Egress string `yaml:"egress"`
	// Network is the number of a private network that VMs are put into, 0 for none; with IPv4 false errand has to be
	// in it.
	Network int64 `yaml:"network"`
	// IPv4 gives VMs public addresses, IPv6 as well; the first costs a little. Without them a VM's first boot installs
	// nothing unless the network has a way out.
	IPv4 bool `yaml:"ipv4"`
	// BillingPeriod is what is paid for at once, from a VM's creation on; Hetzner bills by the hour.
	BillingPeriod time.Duration `yaml:"billing_period"`
	// Insurance is how many VMs that wait with their task may outlive their paid hour, if Hetzner had none of a kind
	// in the last 24 h. Each further hour is paid.
	Insurance int `yaml:"insurance"`
	// Reuse keeps the VM of an ended task while its hour is paid, and gives it, with a fresh disk, to the next
	// task of the same repository.
	Reuse bool `yaml:"reuse"`
}

// maxSetup leaves room for the rest in the 32 KiB that Hetzner takes.
const maxSetup = 16 << 10

// ProviderHetzner is the word for it under `provider`.
const ProviderHetzner = "hetzner"

// DefaultHetzner is everything but the token. Prices are not here: they are asked for.
func DefaultHetzner() Hetzner {
	var list []string
	for _, kind := range []string{"cx43", "cx33", "cpx32", "cpx42"} {
		for _, place := range []string{"fsn1", "nbg1", "hel1"} {
			list = append(list, kind+"/"+place)
		}
	}
	return Hetzner{
		Endpoint: "https://api.hetzner.cloud/v1", Candidates: list, Image: "ubuntu-24.04", Egress: "open", IPv4: true, BillingPeriod: time.Hour,
	}
}

var (
	imageName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{0,62}$`)
	candidate = regexp.MustCompile(`^[a-z0-9-]{1,32}/[a-z0-9-]{1,32}$`)
)

// problems checks the section where it is used.
func (h Hetzner) problems(r *report) {
	r.unless(h.Token.Set(), "hetzner.token", "write env:NAME or file:/path; make the token in the project's security settings, for reading and writing")
	r.unless(isURL(h.Endpoint), "hetzner.endpoint", "%q is no http(s) address", h.Endpoint)
	r.unless(len(h.Candidates) > 0, "hetzner.candidates", "write at least one, such as cx43/fsn1")
	for i, c := range h.Candidates {
		r.unless(candidate.MatchString(c), fmt.Sprintf("hetzner.candidates[%d]", i), "%q: write TYPE/LOCATION by Hetzner's names, such as cx43/fsn1", c)
	}
	r.unless(imageName.MatchString(h.Image), "hetzner.image", "%q: write Hetzner's name of an image, such as ubuntu-24.04", h.Image)
	quoted, err := json.Marshal(h.Setup) // as it is sent
	r.unless(err == nil && len(quoted) <= maxSetup && !strings.ContainsRune(h.Setup, 0), "hetzner.setup", "write a shell script, at most %d bytes; a longer one is what `bake` is for", maxSetup)
	for i, from := range h.SSHFrom {
		_, err := netip.ParsePrefix(from)
		r.unless(err == nil, fmt.Sprintf("hetzner.ssh_from[%d]", i), "%q: write a range of addresses, such as 203.0.113.7/32", from)
	}
	r.unless(slices.Contains([]string{"open", "tether"}, h.Egress), "hetzner.egress", "%q: write open or tether", h.Egress)
	r.unless(h.IPv4 || h.Network > 0, "hetzner.network", "without IPv4 it is the only way to a VM: write the number of a network that this host is in")
	r.unless(h.BillingPeriod > 0, "hetzner.billing_period", "has to be above zero")
	r.unless(h.Insurance >= 0, "hetzner.insurance", "write a number of VMs, 0 for none")
}

// Warnings are what works and is hardly meant.
func (c Config) Warnings() (list []string) {
	h, hetzner := c.Hetzner, c.Provider == ProviderHetzner
	warn := func(when bool, text string) {
		if when {
			list = append(list, text)
		}
	}
	warn(!hetzner && len(c.Bake) > 0, "bake: base images are for `provider: hetzner`; nothing is baked")
	warn(!hetzner && h.Token.Set(), "hetzner: the section is not used unless `provider: hetzner` is written")
	warn(hetzner && h.Egress == "tether" && len(c.Bake) == 0, "hetzner.egress: with tether a VM needs a base image, and `bake` names none: no VM will come up")
	warn(hetzner && h.Setup == "" && len(c.Bake) == 0, "hetzner.setup: without it, and without a base image from `bake`, VMs have no agent program")
	warn(hetzner && h.IPv4 && len(h.SSHFrom) == 0, "hetzner.ssh_from: SSH of the VMs is open to everybody; write the address of this host")
	return list
}

// vmProblems checks that everything that bounds VMs does.
func (l Limits) vmProblems(r *report) {
	r.unless(l.VMHours > 0, "limits.vm_hours", "has to be above zero")
	r.unless(l.VMCreates > 0, "limits.vm_creates", "has to be above zero")
	for key, most := range map[string]float64{"limits.vm_cost_per_day": l.VMCostPerDay, "limits.vm_cost_per_month": l.VMCostPerMonth} {
		r.unless(most >= 0 && most <= 1e6, key, "write an amount, at most 1000000; 0 bounds nothing")
	}
}

// Micro is an amount of money in millionths.
func Micro(amount float64) int64 { return int64(amount*1e6 + 0.5) }
