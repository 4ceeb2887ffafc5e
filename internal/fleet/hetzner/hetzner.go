// Package hetzner provides VMs in a project of the Hetzner Cloud. It is the only package that imports hcloud-go, of
// which it uses the transport and the wire schema.
//
// It makes no decisions. Every request goes through one function (call), which has the timeout, the request budget and
// the retry policy: reads are tried three times, mutations once, because hcloud-go's own retry of a create whose
// response was lost cannot determine the outcome. Results are errors of package fleet: a definite refusal has its own
// error, every other failure of a mutation is fleet.ErrUnknownOutcome, and a repeated call finishes the work without a
// second resource. Servers are found by name, and names and labels are checked here, because the API's search is a
// filter without guarantees.
//
// Start here: [Provider] with its parts, then [Provider.Create].
package hetzner

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"
	"github.com/rs/zerolog"
	"golang.org/x/crypto/ssh"

	"github.com/errand-bot/errand/internal/clock"
	"github.com/errand-bot/errand/internal/fleet"
)

// Egress policies for Settings.Egress.
const (
	EgressOpen   = "open"
	EgressTether = "tether-only"
)

const (
	// User is the agent's login on a VM.
	User = "errand"
	// RootUser is the login for setup and the rotation of the host key.
	RootUser = "root"
	// Home is User's home.
	Home = "/home/errand"
	// RunnerUser is the login that owns run records and the tether. The user data must create it.
	RunnerUser = "errand-runner"
	// RunnerDir is the folder of RunnerUser's programs. The user data must create it.
	RunnerDir = "/usr/local/lib/errand"

	// MaxUserData is the API's limit in bytes.
	MaxUserData = 32 << 10

	// tetherPort is the port of the tether's VM side.
	tetherPort = 9413
	// callTimeout limits one HTTP request.
	callTimeout = 15 * time.Second
)

// Settings are the settings of servers. Package server derives them from the `hetzner:` section of the configuration.
type Settings struct {
	// Endpoint is the API's address; the public cloud's unless set.
	Endpoint string
	// Image is the name or number of the image for VMs without a baked one.
	Image string
	// SSHFrom are the address ranges from which VMs accept SSH, such as 203.0.113.7/32; they must contain errand's
	// address.
	SSHFrom []string
	// Egress is open or tether-only. With tether-only a VM reaches other hosts only through errand, and its image must
	// be a baked one.
	Egress string
	// Network is the number of a private network that VMs join, 0 for none.
	Network int64
	// Private makes errand connect to VMs by their address in Network.
	Private bool
	// IPv4 gives VMs a public IPv4 address, which GitHub needs and which costs extra.
	IPv4 bool
	// IPv6 gives VMs a public IPv6 network.
	IPv6 bool
}

// DefaultSettings are the production defaults.
func DefaultSettings() Settings {
	return Settings{
		Endpoint: hcloud.Endpoint, Image: "ubuntu-24.04", SSHFrom: []string{"0.0.0.0/0", "::/0"},
		Egress: EgressTether, IPv4: true, IPv6: true,
	}
}

// Config is Settings with the deployment's data.
type Config struct {
	Settings
	// Token is the project's API token with read and write access. It never reaches a VM.
	Token string
	// Deployment is the value of fleet.LabelDeployment.
	Deployment string
	// ClientKey is the deployment's SSH key. It is registered once, so that the API generates no root passwords.
	ClientKey ssh.PublicKey
	// OneUser states that servers have no RunnerUser, as in simulators.
	OneUser bool
	// Candidates are the VM types to order; only Describe uses them.
	Candidates []fleet.Offer
	// Version goes into the User-Agent.
	Version string
	// HTTP makes the requests. Default is a separate client with a timeout.
	HTTP *http.Client
	// RequestsPerHour limits errand's requests. Default 3600, the API's limit for a project.
	RequestsPerHour int
	// Tick scales the pauses between checks of a server that is being powered off or deleted. Default 5 s.
	Tick time.Duration
	// Pause is how long no call is made after the API reported its rate limit. Default 30 s.
	Pause time.Duration
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Sleep waits between two checks of a server. Default is a timer.
	Sleep func(ctx context.Context, d time.Duration) error
	// Log gets a line for every mutation.
	Log zerolog.Logger
}

// Provider orders and deletes servers of one deployment. It is safe for concurrent use.
//
// Its parts have one subject each. A part uses only the parts above it in the list.
type Provider struct {
	*api
	market        *market
	servers       *servers
	addresses     *addresses
	power         *power
	images        *images
	prerequisites *prerequisites
	orders        *orderer
	deletion      *deleter
	audit         *auditor
}

var (
	_ fleet.Market    = (*Provider)(nil)
	_ fleet.Imager    = (*Provider)(nil)
	_ fleet.Rebuilder = (*Provider)(nil)
	_ fleet.Auditor   = (*Provider)(nil)
)

// New checks the configuration. It makes no request.
func New(cfg Config) (*Provider, error) {
	if cfg.Token == "" || cfg.Deployment == "" || cfg.ClientKey == nil {
		return nil, errors.New("hetzner provider: token, deployment and client key are needed")
	}
	if !validLabel(cfg.Deployment) {
		return nil, fmt.Errorf("hetzner provider: deployment %q cannot be the value of a label", cfg.Deployment)
	}
	if err := cfg.Settings.check(); err != nil {
		return nil, fmt.Errorf("hetzner provider: %w", err)
	}
	return newProvider(newAPI(cfg)), nil
}

func newAPI(cfg Config) *api {
	cfg = cfg.withDefaults()
	client := hcloud.NewClient(
		hcloud.WithToken(cfg.Token),
		hcloud.WithEndpoint(cfg.Endpoint),
		hcloud.WithHTTPClient(cfg.HTTP),
		hcloud.WithApplication("errand", cfg.Version),
		hcloud.WithRetryOpts(hcloud.RetryOpts{MaxRetries: 0}),
	)
	return &api{cfg: cfg, client: client, budget: newBudget(cfg.Now, cfg.RequestsPerHour, cfg.Pause)}
}

func newProvider(a *api) *Provider {
	p := &Provider{api: a, market: &market{api: a}, prerequisites: &prerequisites{api: a}}
	p.servers = &servers{api: a, market: p.market, states: map[int64]serverState{}, cachedServers: map[int64]cachedServer{}}
	p.addresses = &addresses{api: a, unclaimed: map[int64]unclaimedAddress{}}
	p.power = &power{api: a, servers: p.servers, usualWaits: map[waitKind]time.Duration{}}
	p.images = &images{api: a, power: p.power, seen: map[int64]time.Time{}}
	p.orders = &orderer{api: a, servers: p.servers, prerequisites: p.prerequisites}
	p.deletion = &deleter{api: a, servers: p.servers, addresses: p.addresses, power: p.power}
	p.audit = &auditor{api: a, servers: p.servers, images: p.images, addresses: p.addresses, prerequisites: p.prerequisites}
	return p
}

func (s Settings) check() error {
	switch {
	case s.Egress != "" && s.Egress != EgressOpen && s.Egress != EgressTether:
		return fmt.Errorf("egress %q: must be %s or %s", s.Egress, EgressOpen, EgressTether)
	case s.Private && s.Network == 0:
		return errors.New("a private connection needs a network")
	case !s.Private && !s.IPv4 && !s.IPv6:
		return errors.New("a VM without ipv4 and ipv6 is only reachable by a private connection")
	}
	for _, from := range s.SSHFrom {
		if _, err := netip.ParsePrefix(from); err != nil {
			return fmt.Errorf("parse an address range of SSHFrom: %w", err)
		}
	}
	return nil
}

func (cfg Config) withDefaults() Config {
	def := DefaultSettings()
	if cfg.Endpoint == "" {
		cfg.Endpoint = def.Endpoint
	}
	if cfg.Image == "" {
		cfg.Image = def.Image
	}
	if cfg.Egress == "" {
		cfg.Egress = def.Egress
	}
	if len(cfg.SSHFrom) == 0 {
		cfg.SSHFrom = def.SSHFrom
	}
	if cfg.HTTP == nil {
		cfg.HTTP = &http.Client{Timeout: callTimeout, Transport: http.DefaultTransport.(*http.Transport).Clone()}
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Sleep == nil {
		cfg.Sleep = clock.Sleep
	}
	if cfg.RequestsPerHour <= 0 {
		cfg.RequestsPerHour = requestsPerHour
	}
	if cfg.Tick <= 0 {
		cfg.Tick = 5 * time.Second
	}
	if cfg.Pause <= 0 {
		cfg.Pause = 30 * time.Second
	}
	return cfg
}

// Name is "hetzner".
func (p *Provider) Name() string { return "hetzner" }

// SetupUser is [RootUser].
func (p *Provider) SetupUser() string { return RootUser }
