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

// Hetzner configures VMs in Hetzner Cloud. Use a separate project for errand: it reports everything in the project that
// it does not know.
type Hetzner struct {
	// Token is an API token of the project with read and write permission, from the project's security settings.
	Token Secret `yaml:"token"`
	// Endpoint is the address of Hetzner's API.
	Endpoint string `yaml:"endpoint"`
	// Candidates are the server types to order, in order of preference, as TYPE/LOCATION with Hetzner's names. errand
	// takes the first one that is available and large enough for the repository, so list the cheapest sufficient type
	// first.
	Candidates []string `yaml:"candidates"`
	// Image is the Hetzner image that VMs are created from if no base image was baked.
	Image string `yaml:"image"`
	// Setup is a script that bash runs as root at the first boot of a VM without a base image. It installs packages,
	// toolchains, and the agent's program, which every run needs. Each such VM waits for it, at most half an hour once
	// it answers; bake a base image for anything that takes more than a minute.
	Setup string `yaml:"setup"`
	// SSHFrom are the address ranges from which SSH to VMs is allowed, such as 203.0.113.7/32: write the public address
	// of this host. All by default.
	SSHFrom []string `yaml:"ssh_from"`
	// Egress is tether or open. With tether, the firewall blocks all other traffic once the first boot has finished, and
	// agents reach only the model, their repository and egress.allow, through errand. With open they reach everything.
	Egress string `yaml:"egress"`
	// Network is the ID of a private network that VMs join, or 0 for none. If ipv4 is false, this host must be in it.
	Network int64 `yaml:"network"`
	// IPv4 gives VMs public IPv4 and IPv6 addresses; IPv4 costs a small amount. Without them the first boot can install
	// packages only if the network has a route to the internet.
	IPv4 bool `yaml:"ipv4"`
	// BillingPeriod is the unit in which VMs are billed, counted from their creation. Hetzner bills by the hour.
	BillingPeriod time.Duration `yaml:"billing_period"`
	// Insurance is how many VMs of waiting tasks may be kept beyond their paid hour if Hetzner had no capacity for a
	// server type in the last 24 hours. Each further hour is paid.
	Insurance int `yaml:"insurance"`
	// Reuse keeps the VM of an ended task until its paid hour ends, and gives it with a fresh disk to the next task of
	// the same repository. If egress is tether, this needs a base image.
	Reuse bool `yaml:"reuse"`
}

// maxSetup leaves room for the rest of the user data within Hetzner's limit of 32 KiB.
const maxSetup = 16 << 10

// DefaultHetzner returns the defaults of everything but the token. Prices are not among them: errand asks Hetzner for
// them.
func DefaultHetzner() Hetzner {
	var list []string
	for _, kind := range []string{"cx43", "cx33", "cpx32", "cpx42"} {
		for _, place := range []string{"fsn1", "nbg1", "hel1"} {
			list = append(list, kind+"/"+place)
		}
	}
	return Hetzner{
		Endpoint: "https://api.hetzner.cloud/v1", Candidates: list, Image: "ubuntu-24.04", Egress: "tether", IPv4: true, BillingPeriod: time.Hour,
	}
}

var (
	imageName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{0,62}$`)
	candidate = regexp.MustCompile(`^[a-z0-9-]{1,32}/[a-z0-9-]{1,32}$`)
)

// problems checks the section if it is used.
func (h Hetzner) problems(r *report) {
	r.unless(h.Token.Set(), "hetzner.token", "write env:NAME or file:/path; create the token in the project's security settings, with read and write permission")
	r.unless(isURL(h.Endpoint), "hetzner.endpoint", "%q is not an http(s) address", h.Endpoint)
	r.unless(len(h.Candidates) > 0, "hetzner.candidates", "write at least one, such as cx43/fsn1")
	for i, c := range h.Candidates {
		r.unless(candidate.MatchString(c), fmt.Sprintf("hetzner.candidates[%d]", i), "%q: write TYPE/LOCATION by Hetzner's names, such as cx43/fsn1", c)
	}
	r.unless(imageName.MatchString(h.Image), "hetzner.image", "%q: write Hetzner's name of an image, such as ubuntu-24.04", h.Image)
	quoted, err := json.Marshal(h.Setup) // as it is sent
	r.unless(err == nil && len(quoted) <= maxSetup && !strings.ContainsRune(h.Setup, 0), "hetzner.setup", "write a shell script, at most %d bytes; use `bake` for a longer one", maxSetup)
	for i, from := range h.SSHFrom {
		_, err := netip.ParsePrefix(from)
		r.unless(err == nil, fmt.Sprintf("hetzner.ssh_from[%d]", i), "%q: write a range of addresses, such as 203.0.113.7/32", from)
	}
	r.unless(slices.Contains([]string{"tether", "open"}, h.Egress), "hetzner.egress", "%q: write tether or open", h.Egress)
	r.unless(h.IPv4 || h.Network > 0, "hetzner.network", "required without IPv4, because errand then reaches VMs only through it: write the ID of a network that this host is in")
	r.unless(h.BillingPeriod > 0, "hetzner.billing_period", "must be greater than zero")
	r.unless(h.Insurance >= 0, "hetzner.insurance", "write a number of VMs, 0 for none")
}

// warnings returns settings that are valid but probably not intended. Baked means that base images are configured.
func (h Hetzner) warnings(baked bool) (list []string) {
	warn := func(when bool, text string) {
		if when {
			list = append(list, text)
		}
	}
	warn(h.Egress == "open", "hetzner.egress: agents reach every host, and `egress.allow` restricts nothing; write tether to change that")
	warn(h.Egress == "tether" && h.Reuse && !baked, "hetzner.reuse: with `egress: tether` only VMs with a base image are reused, and `bake` names none")
	warn(h.Setup == "" && !baked, "hetzner.setup: without it, and without a base image from `bake`, VMs have no agent program")
	warn(h.IPv4 && len(h.SSHFrom) == 0, "hetzner.ssh_from: SSH of the VMs is open to everybody; write the address of this host")
	return list
}
