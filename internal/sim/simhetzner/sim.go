package simhetzner

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"time"
)

// Config configures a simulator. The zero value works: real time, no computers, unlimited capacity.
type Config struct {
	// Now is the clock. Default time.Now; see [Clock].
	Now func() time.Time
	// Token is the only accepted token; empty accepts any.
	Token string
	// ReadOnlyToken, if set, is accepted for reading only.
	ReadOnlyToken string
	// Period is the billing period. Default an hour.
	Period time.Duration
	// Took are the durations of actions.
	Took Took
	// Machines provides computers for the servers; nil: data only.
	Machines Machines
	// Quota is the account's quota.
	Quota Quota
	// RateLimit is the number of requests per hour. Default 3600; negative: no limit.
	RateLimit int
	// VAT is the rate in percent. Default 19; negative: none.
	VAT int64
	// ImageGB is the size of a snapshot without a Machine. Default 4.
	ImageGB float32
	// IPv4 is the range of public addresses. Default 198.18.0.0/15. The lowest free address is assigned next, as in the
	// real API, where addresses are soon reused by others.
	IPv4 netip.Prefix
	// KeepAddresses keeps the addresses created with a server when it is deleted.
	KeepAddresses bool
	// Record is a folder for one response of each kind, for the likeness test. Default $SIMHETZNER_RECORD.
	Record string
}

// Took are the durations of actions. Zero means the default, negative means none.
type Took struct {
	Create   time.Duration // create_server: default 12 s
	FromDisk time.Duration // create_server from a snapshot in its own location: default 60 s
	FromFar  time.Duration // create_server from a snapshot in another location: default 15 min
	Start    time.Duration // start_server: default 8 s
	Stop     time.Duration // stop_server: default 2 s
	Shutdown time.Duration // from a shutdown request until the server is off: default 10 s
	Rebuild  time.Duration // rebuild_server: default 7 s
	Image    time.Duration // create_image: default 2 min
	Delete   time.Duration // delete_server: default 1 s
	Other    time.Duration // everything else: default 1 s
}

func (t Took) withDefaults() Took {
	for at, d := range map[*time.Duration]time.Duration{
		&t.Create: 12 * time.Second, &t.FromDisk: time.Minute, &t.FromFar: 15 * time.Minute, &t.Start: 8 * time.Second,
		&t.Stop: 2 * time.Second, &t.Shutdown: 10 * time.Second, &t.Rebuild: 7 * time.Second, &t.Image: 2 * time.Minute,
		&t.Delete: time.Second, &t.Other: time.Second,
	} {
		*at = max(cmp.Or(*at, d), 0)
	}
	return t
}

// Scaled returns the defaults divided by n, for demos.
func Scaled(n int64) Took {
	t := Took{}.withDefaults()
	for _, at := range []*time.Duration{
		&t.Create, &t.FromDisk, &t.FromFar, &t.Start, &t.Stop, &t.Shutdown, &t.Rebuild, &t.Image, &t.Delete, &t.Other,
	} {
		*at /= time.Duration(n)
	}
	return t
}

// Quota limits an account over all its projects. Zero means no limit.
type Quota struct{ Servers, Cores, PrimaryIPv4, Snapshots, Volumes int }

// Sim is one project of one account. It is safe for concurrent use.
type Sim struct {
	cfg     Config
	ctx     context.Context
	cancel  context.CancelFunc
	work    sync.WaitGroup // Machine operations in progress
	mux     *http.ServeMux
	records *recorder
	faults  *faultBook

	mu      sync.Mutex
	httpd   *http.Server
	lastID  int64
	bucket  bucket
	catalog *catalog
	stocks  stocks
	events  schedule
	actions actionSet
	meters  meters
	log     requestLog

	servers    map[int64]*server
	images     imageSet
	keys       map[int64]*sshKey
	firewalls  map[int64]*firewall
	networks   map[int64]*network
	volumes    map[int64]*volume
	primaryIPs map[int64]*primaryIP
}

// New returns an account with one empty project. Call Close if there are Machines.
func New(cfg Config) *Sim {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.Period = cmp.Or(cfg.Period, time.Hour)
	cfg.RateLimit = cmp.Or(cfg.RateLimit, 3600)
	cfg.VAT = max(cmp.Or(cfg.VAT, 19), 0)
	cfg.ImageGB = cmp.Or(cfg.ImageGB, 4)
	cfg.Took = cfg.Took.withDefaults()
	cfg.Record = cmp.Or(cfg.Record, os.Getenv(RecordVar))
	if !cfg.IPv4.IsValid() {
		cfg.IPv4 = netip.MustParsePrefix("198.18.0.0/15")
	}
	s := &Sim{
		cfg: cfg, faults: &faultBook{now: cfg.Now}, bucket: bucket{size: cfg.RateLimit}, catalog: newCatalog(),
		lastID: 1000, stocks: stocks{}, actions: actionSet{}, log: requestLog{counts: map[string]int{}},
		servers: map[int64]*server{}, images: imageSet{}, keys: map[int64]*sshKey{}, firewalls: map[int64]*firewall{},
		networks: map[int64]*network{}, volumes: map[int64]*volume{}, primaryIPs: map[int64]*primaryIP{},
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.records = newRecorder(cfg.Record)
	s.mux = s.router()
	s.stockImages()
	return s
}

// Start listens on an address such as 127.0.0.1:0 and returns the endpoint for clients, which ends in /v1.
func (s *Sim) Start(address string) (endpoint string, err error) {
	ln, err := net.Listen("tcp", address)
	if err != nil {
		return "", fmt.Errorf("listen for the Hetzner simulator: %w", err)
	}
	httpd := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	s.mu.Lock()
	s.httpd = httpd
	s.mu.Unlock()
	s.work.Go(func() { _ = httpd.Serve(ln) }) // ends with Close
	return "http://" + ln.Addr().String() + "/v1", nil
}

// Close ends hanging requests, deletes all Machines and waits for their operations.
func (s *Sim) Close() {
	s.cancel()
	s.mu.Lock()
	httpd := s.httpd
	s.mu.Unlock()
	if httpd != nil {
		_ = httpd.Close()
	}
	s.work.Wait()
	s.mu.Lock()
	var left []Machine
	for _, sv := range s.servers {
		if sv.machine != nil {
			left = append(left, sv.machine)
			sv.machine = nil
		}
	}
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), machineTimeout)
	defer cancel()
	for _, m := range left {
		_ = m.Delete(ctx) // the process that runs them is about to end
	}
}

// nextID returns an unused ID. s.mu is locked, or s is not shared yet.
func (s *Sim) nextID() int64 {
	s.lastID++
	return s.lastID
}

// Clock is a clock that only moves on request. It is safe for concurrent use.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a clock set to start.
func NewClock(start time.Time) *Clock { return &Clock{now: start} }

// Now returns the clock's time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock forward and returns the new time. It ignores a negative d.
func (c *Clock) Advance(d time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(max(d, 0))
	return c.now
}

// Set moves the clock forward to t, if t is later.
func (c *Clock) Set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.After(c.now) {
		c.now = t
	}
}
