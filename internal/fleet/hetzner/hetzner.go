// Package hetzner provides VMs in a project of the Hetzner Cloud. It is the only
// package that knows hcloud-go, of which it uses the transport and the wire schema.
//
// It states facts and never decides. Every call goes through one door (call), which
// has the timeout, the request budget and the retry policy: reads are tried three
// times, mutations once, because hcloud's own retry of a create whose answer was
// lost cannot tell what it did. What happened is told by the errors of package
// fleet: a definite refusal has an error of its own, everything else on a mutation
// is fleet.ErrUnknownOutcome, and calling again finishes the work without a second
// object. Servers are found by name, and names and labels are checked here, because
// the API's search by name is a filter that nobody vouches for.
//
// Start reading at Provider.Create.
package hetzner

import (
	"context"

	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"
	"github.com/hetznercloud/hcloud-go/v2/hcloud/schema"
	"github.com/rs/zerolog"
	"golang.org/x/crypto/ssh"

	"github.com/errand-bot/errand/internal/fleet"
)

// Egress policies for Settings.Egress.
const (
	EgressOpen   = "open"
	EgressTether = "tether-only"
)

const (
	// User is the login that does the work on a VM.
	User = "errand"
	// RootUser is the login for set-up and the rotation of the host key.
	RootUser = "root"
	// Home is User's home.
	Home = "/home/errand"
	// RunnerUser is the login that keeps the records of runs and the tether. The user data has to make it.
	RunnerUser = "errand-runner"
	// RunnerDir is where the programs of RunnerUser lie. The user data has to make it.
	RunnerDir = "/usr/local/lib/errand"

	// MaxUserData is what the API takes, in bytes.
	MaxUserData = 32 << 10

	// tetherPort is where the tether's end listens in a VM.
	tetherPort = 9413
	// callTimeout bounds one HTTP request.
	callTimeout = 15 * time.Second
)

// Settings are what an operator says in `hetzner:` about servers.
type Settings struct {
	// Endpoint is the API's address; the public cloud's unless set.
	Endpoint string `yaml:"endpoint"`
	// Image is the name or number of the image of VMs that have no baked one.
	Image string `yaml:"image"`
	// SSHFrom are the address ranges from which VMs take SSH, such as 203.0.113.7/32: where errand is.
	SSHFrom []string `yaml:"ssh_from"`
	// Egress is open, or tether-only: then a VM reaches nothing but through errand, and its image has to
	// be a baked one.
	Egress string `yaml:"egress"`
	// Network is the number of a private network that VMs join, 0 for none.
	Network int64 `yaml:"network"`
	// Private makes errand reach VMs by their address in Network.
	Private bool `yaml:"private"`
	// IPv4 gives VMs a public IPv4 address, which GitHub needs and which costs extra.
	IPv4 bool `yaml:"ipv4"`
	// IPv6 gives VMs a public IPv6 network.
	IPv6 bool `yaml:"ipv6"`
}

// DefaultSettings are the production defaults.
func DefaultSettings() Settings {
	return Settings{
		Endpoint: hcloud.Endpoint, Image: "ubuntu-24.04", SSHFrom: []string{"0.0.0.0/0", "::/0"},
		Egress: EgressOpen, IPv4: true, IPv6: true,
	}
}

// Config is Settings with what the deployment adds.
type Config struct {
	Settings
	// Token is the project's API token, for reading and writing. It never reaches a VM.
	Token string
	// Deployment is the value of fleet.LabelDeployment.
	Deployment string
	// ClientKey is the deployment's SSH key. It is registered once, so that no root password is made.
	ClientKey ssh.PublicKey
	// OneUser says that servers have no RunnerUser, as stand-ins have not.
	OneUser bool
	// Candidates are the kinds of VM that will be ordered, for Describe only.
	Candidates []fleet.Offer
	// Version goes into the User-Agent.
	Version string
	// HTTP makes the requests. Default is a client of its own with a timeout.
	HTTP *http.Client
	// RequestsPerHour bounds our requests. Default 3600, which is what the API allows a project.
	RequestsPerHour int
	// Tick is what the pauses between two checks of a server that is to go off, or away, are derived from. Default 5 s.
	Tick time.Duration
	// Pause is how long no call is made after the API said "too many". Default 30 s.
	Pause time.Duration
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Sleep waits between two looks at a server. Default is a timer.
	Sleep func(ctx context.Context, d time.Duration) error
	// Log gets a line for every mutation.
	Log zerolog.Logger
}

// Provider orders and deletes servers of one deployment. It is safe for concurrent use.
type Provider struct {
	cfg    Config
	client *hcloud.Client
	budget *budget

	mu     sync.Mutex
	ground *ground            // nil until the key and firewall are known
	prices *prices            // nil until the first look
	priced time.Time          // of the last such look, good or bad
	judged map[int64]judgment // by server
	// unclaimed are addresses of deleted servers that could not be labeled, by id.
	unclaimed map[int64]unclaimedAddress
	// The last server that we have powered off, and when it was off.
	off   schema.Server
	offAt time.Time
	usual map[waitKind]time.Duration // when the first check of a wait is worth its call
	seen  seen
}

var (
	_ fleet.Market    = (*Provider)(nil)
	_ fleet.Imager    = (*Provider)(nil)
	_ fleet.Rebuilder = (*Provider)(nil)
	_ fleet.Auditor   = (*Provider)(nil)
)

// New checks the configuration. It calls nobody.
func New(cfg Config) (*Provider, error) {
	if cfg.Token == "" || cfg.Deployment == "" || cfg.ClientKey == nil {
		return nil, errors.New("hetzner provider: token, deployment and client key are needed")
	}
	if !validLabel(cfg.Deployment) {
		return nil, fmt.Errorf("hetzner provider: deployment %q cannot be the value of a label", cfg.Deployment)
	}
	if err := cfg.Settings.check(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	client := hcloud.NewClient(
		hcloud.WithToken(cfg.Token),
		hcloud.WithEndpoint(cfg.Endpoint),
		hcloud.WithHTTPClient(cfg.HTTP),
		hcloud.WithApplication("errand", cfg.Version),
		hcloud.WithRetryOpts(hcloud.RetryOpts{MaxRetries: 0}),
	)
	return &Provider{
		cfg: cfg, client: client, budget: newBudget(cfg.Now, cfg.RequestsPerHour, cfg.Pause),
		judged: map[int64]judgment{}, unclaimed: map[int64]unclaimedAddress{}, usual: map[waitKind]time.Duration{}, seen: newSeen(),
	}, nil
}

func (s Settings) check() error {
	switch {
	case s.Egress != "" && s.Egress != EgressOpen && s.Egress != EgressTether:
		return fmt.Errorf("hetzner.egress %q: has to be %s or %s", s.Egress, EgressOpen, EgressTether)
	case s.Private && s.Network == 0:
		return errors.New("hetzner.private: needs hetzner.network")
	case !s.Private && !s.IPv4 && !s.IPv6:
		return errors.New("hetzner: a VM without ipv4 and ipv6 is reached over hetzner.private only")
	}
	for _, from := range s.SSHFrom {
		if _, err := netip.ParsePrefix(from); err != nil {
			return fmt.Errorf("hetzner.ssh_from: %w", err)
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
		cfg.HTTP = &http.Client{Timeout: callTimeout}
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Sleep == nil {
		cfg.Sleep = sleep
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

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
