package simgithub

import (
	"context"
	"crypto/rsa"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/sim/simgithub/delivery"
	"github.com/errand-bot/errand/internal/sim/simgithub/git"
	"github.com/errand-bot/errand/internal/sim/simgithub/record"
)

// Config configures a simulator. Only Dir is required.
type Config struct {
	Dir         string            // folder of the bare repositories; created if missing
	Now         func() time.Time  // clock of everything that happens, in whole seconds; default time.Now
	AuthNow     func() time.Time  // clock of JWTs and tokens; default time.Now, which the clients use, too
	Log         zerolog.Logger    // default: silent
	BaseURL     string            // base address of the handler; Start sets it
	AppSlug     string            // default "errand"
	Permissions map[string]string // permissions of the App; default: those that errand needs
	// Events are the events that the App subscribes to. The default is those of errand. Also possible: create, delete,
	// member.
	Events    []string
	Key       *rsa.PrivateKey // key of the App; default: a new one, which takes a while
	RateLimit int             // per token, hour and bucket; default 5000
	// ContentRate is the number of objects created per minute and token until the secondary limit is reached. The
	// default is no limit.
	ContentRate int
	HookTimeout time.Duration // default 10 s, as on GitHub
	// EnterpriseVersion is the version of the Enterprise Server that is simulated. An App's manifest can have the events that it knows. The
	// default is 3.18.0.
	EnterpriseVersion string
	// Pages serves everything that is neither API nor git. The default is nothing.
	Pages func(*Sim, zerolog.Logger) http.Handler
	// Record is a folder for one record of each shape of answer and webhook. The default is the value of record.Var, or
	// none.
	Record string
}

// Sim is a simulator of GitHub. All its methods may be called concurrently.
type Sim struct {
	cfg     Config
	log     zerolog.Logger
	handler http.Handler
	hooks   *delivery.Queue
	parts
	faults  *faultBook
	counts  *callBook
	lfs     *git.LFS
	records *record.Recorder // nil: nothing is recorded

	mu     sync.Mutex // guards all fields below
	lastID int64
	base   string
	app    App
	key    *rsa.PrivateKey
	codes  map[string]time.Time // of Apps made from manifests, until they are exchanged, with their ends
	// userCodes are the codes of people's authorizations until they are exchanged, and authorized are the people by their IDs.
	userCodes  map[string]userCode
	authorized map[int64]bool
	users      map[string]*User // by login
	repos      map[string]*Repo // by full name, lower case
	moved      map[string]int64 // old full names of renamed repositories
	installs   []*Installation
	teams      []*team
	tokens     map[string]*token
	nodes      map[string]any // by node id
	verified   map[string]bool
	uploads    map[string]*upload // by the end of their addresses
	limits     map[string]*bucket
	made       map[string][]time.Time // times at which each actor created objects in the last minute, if ContentRate is set
	listLag    time.Duration
	maxTree    int                 // entries of a recursive list of files; 0 lists all
	born       map[int64]time.Time // creation times by id, if lists lag

	ctx    context.Context // ends when Close is called
	cancel context.CancelFunc
	wg     sync.WaitGroup
	server *http.Server
}

// New returns a simulator with one App and no repository. Call Close when done.
func New(cfg Config) (*Sim, error) {
	if cfg.Dir == "" {
		return nil, errors.New("simgithub: Dir is required")
	}
	if err := os.MkdirAll(filepath.Join(cfg.Dir, "repos"), 0o755); err != nil {
		return nil, fmt.Errorf("create repository folder: %w", err)
	}
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("find repository folder: %w", err)
	}
	cfg.Dir = dir
	cfg = withDefaults(cfg)
	if _, err := git.FindBackend(); err != nil {
		return nil, err
	}
	records, err := record.New(cfg.Record, cfg.Log, callerKind)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Sim{
		records: records, cfg: cfg, log: cfg.Log, base: strings.TrimSuffix(cfg.BaseURL, "/"),
		faults: newFaultBook(), lfs: git.NewLFS(filepath.Join(cfg.Dir, "lfs"), cfg.AuthNow), counts: newCallBook(), lastID: 1000,
		users: map[string]*User{}, repos: map[string]*Repo{}, moved: map[string]int64{}, tokens: map[string]*token{},
		nodes: map[string]any{}, userCodes: map[string]userCode{}, authorized: map[int64]bool{},
		uploads:  map[string]*upload{},
		verified: map[string]bool{}, limits: map[string]*bucket{}, made: map[string][]time.Time{}, ctx: ctx, cancel: cancel,
	}
	s.parts = partsOf(s)
	if err := s.makeApp(); err != nil {
		cancel()
		return nil, err
	}
	handler, err := s.routes()
	if err != nil {
		cancel()
		return nil, err
	}
	s.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-GitHub-Enterprise-Version", cfg.EnterpriseVersion)
		handler.ServeHTTP(w, r)
	})
	s.hooks = delivery.New(ctx, delivery.Config{
		Now: cfg.Now, Timeout: cfg.HookTimeout, AppID: s.app.ID,
		OnSend: func(d *delivery.Delivery) { s.records.Webhook(d.Event, d.ReqHeader, d.Payload) },
	})
	s.wg.Go(s.hooks.Run)
	return s, nil
}

func withDefaults(cfg Config) Config {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.AuthNow == nil {
		cfg.AuthNow = time.Now
	}
	if cfg.BaseURL == "" {
		cfg.BaseURL = "http://localhost"
	}
	if cfg.AppSlug == "" {
		cfg.AppSlug = "errand"
	}
	if cfg.Permissions == nil {
		cfg.Permissions = map[string]string{
			"metadata": "read", "issues": "write", "pull_requests": "write", "contents": "write",
			"checks": "read", "actions": "read", "statuses": "read",
		}
	}
	if cfg.Events == nil {
		cfg.Events = []string{
			"issues", "issue_comment", "pull_request", "pull_request_review", "pull_request_review_comment",
			"pull_request_review_thread", "push", "check_run", "check_suite", "workflow_run", "sub_issues",
			"issue_dependencies", "repository", "status",
		}
	}
	if cfg.RateLimit == 0 {
		cfg.RateLimit = 5000
	}
	if cfg.EnterpriseVersion == "" {
		cfg.EnterpriseVersion = "3.18.0"
	}
	if cfg.Record == "" {
		cfg.Record = os.Getenv(record.Var)
	}
	if cfg.HookTimeout == 0 {
		cfg.HookTimeout = 10 * time.Second
	}
	return cfg
}

// Handler serves all of GitHub. Before the base address is known, answers and payloads name http://localhost.
func (s *Sim) Handler() http.Handler { return s.handler }

// Start listens on addr (such as "127.0.0.1:0"), serves until Close, and returns the base address, which it also sets.
func (s *Sim) Start(addr string) (string, error) {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return "", fmt.Errorf("listen for the GitHub simulator: %w", err)
	}
	base := "http://" + ln.Addr().String()
	s.SetBaseURL(base)
	srv := &http.Server{Handler: s.handler, ReadHeaderTimeout: 10 * time.Second}
	s.mu.Lock()
	s.server = srv
	s.mu.Unlock()
	s.wg.Go(func() {
		if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error().Err(err).Msg("GitHub simulator stopped serving")
		}
	})
	return base, nil
}

// SetBaseURL sets the base address of the handler, which answers and payloads contain.
func (s *Sim) SetBaseURL(base string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.base = strings.TrimSuffix(base, "/")
}

// BaseURL returns the base address of the handler.
func (s *Sim) BaseURL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.base
}

// SetWebhook sets the address of the App's deliveries and, if it is not empty, the secret.
func (s *Sim) SetWebhook(url, secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.app.WebhookURL = url
	if secret != "" {
		s.app.WebhookSecret = secret
	}
}

// Close stops serving, aborts hanging requests and undelivered webhooks, and waits for all of them. It may be called
// twice.
func (s *Sim) Close() error {
	s.cancel()
	s.mu.Lock()
	srv := s.server
	s.server = nil
	s.mu.Unlock()
	var err error
	if srv != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err = srv.Shutdown(ctx); err != nil {
			err = srv.Close()
		}
	}
	s.wg.Wait()
	return err
}

// now returns the time of the simulator: UTC in whole seconds, as on GitHub.
func (s *Sim) now() time.Time { return s.cfg.Now().UTC().Truncate(time.Second) }

// newID returns an id that is larger than all earlier ones.
func (s *Sim) newID() int64 {
	s.lastID++
	if s.born != nil {
		s.born[s.lastID] = time.Now()
	}
	return s.lastID
}
