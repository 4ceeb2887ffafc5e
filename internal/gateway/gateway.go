// Package gateway admits the calls that agents make to models, forwards them to the models' providers with errand's
// key, and accounts for their cost.
//
// A call counts from before it is forwarded until its cost is stored, so that the caps hold for concurrent calls, too.
// From before it is forwarded it has a reservation in the store, so that it is charged exactly once even if errand dies
// or the disk is full meanwhile.
//
// Start with [Gateway.Serve]. Package modelapi knows the providers' APIs; package tether authenticates the requests.
package gateway

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/egress"
	"github.com/errand-bot/errand/internal/modelapi"
	"github.com/errand-bot/errand/internal/subscription"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/store"
)

// Provider is the API of a model provider.
type Provider struct {
	BaseURL string // without a slash at the end
	Key     string
	// Header is the header with the key: "X-Api-Key", or "Authorization" for a bearer token.
	Header string
	// Subscription replaces Key and Header. Its calls cost nothing by themselves.
	Subscription *subscription.Source
	API          modelapi.API
	// WebTools lets the provider reach other hosts for agents, by its own tools and by addresses of content.
	WebTools bool
}

// Ledger stores the costs of runs, and knows the caps of all tasks together.
type Ledger interface {
	// Record adds a usage record to a run and its task, and deletes the call's reservation in the same transaction. If
	// that reservation does not exist any more, the error is [store.ErrSpent].
	Record(ctx context.Context, u UsageRecord) error
	// CapReached returns a cap of all tasks together that is reached, or that leaves less than need; nil if there is
	// none. InFlight is added to the booked costs. Free means that the call is made on a subscription: caps on cost do
	// not count then.
	CapReached(ctx context.Context, inFlight, need state.Money, free bool) (*state.Waiting, error)
	// Left returns the budget that these caps leave.
	Left(ctx context.Context, inFlight state.Money, free bool) (state.Remaining, error)
}

// A UsageRecord is the cost of a call, or why a run gets no answer from a model, or both.
type UsageRecord struct {
	Task state.TaskKey
	Run  string
	// Reservation is the ID of the call's reservation, empty if it has none.
	Reservation string
	Cost        state.Money
	// Wait is why the call was denied, or its answer is incomplete; nil for a complete answer.
	Wait *state.Waiting
}

// Journal stores the reservations of calls, from before a call is forwarded until it is booked, so that they survive a
// restart.
type Journal interface {
	Reserve(ctx context.Context, r store.Reservation) error
	Release(ctx context.Context, id string) error
	All(ctx context.Context) ([]store.Reservation, error)
}

// Config configures a Gateway.
type Config struct {
	Tasks Tasks
	// Providers are the providers' APIs by name: /llm/NAME/… is forwarded to Providers[NAME].
	Providers map[string]Provider
	Prices    modelapi.Prices
	Ledger    Ledger
	// Journal stores reservations; nil stores none.
	Journal Journal
	// AllowedModels returns which models a task's run may call; nil means the one that it was started with.
	AllowedModels func(t *state.Task) AllowedModels
	// ProviderStates stores limits and refused keys of providers; nil stores none.
	ProviderStates ProviderStates
	// Backoff is the time before the first check of a refused key.
	Backoff time.Duration
	// Now returns the current time; nil means time.Now.
	Now func() time.Time
	// IdleTimeout is how long a provider may send nothing, before an answer or within one; 0 means ten minutes.
	IdleTimeout time.Duration
	// QueueTimeout is how long a call waits for earlier ones before it is denied temporarily; 0 means 20 seconds.
	QueueTimeout time.Duration
	Log          zerolog.Logger
	// Denied is called with the model or feature that a denied call requested, as a refused request for another host.
	// It may be nil.
	Denied func(t *state.Task, r egress.Request)
	// Transport sends the calls to the providers.
	Transport http.RoundTripper
}

// prefix is the beginning of the gateway's paths. The provider's name follows, then the path of its API.
const prefix = "/llm/"

// A Gateway admits model calls, forwards them to their providers, and accounts for their cost. It is safe for
// concurrent use.
type Gateway struct {
	cfg      Config
	inFlight inFlightCalls
	idle     idleTimeouts
	turns    turnCounter
	denials  denialLog
	probing  sync.Mutex // one key is checked at a time
}

// New returns a Gateway.
func New(cfg Config) *Gateway { return &Gateway{cfg: cfg} }

// splitPath returns the provider's name in a request's path, and the path after it.
func splitPath(r *http.Request) (provider, rest string) {
	provider, rest, found := strings.Cut(strings.TrimPrefix(r.URL.Path, prefix), "/")
	if found {
		rest = "/" + rest
	}
	return provider, rest
}

// RetryLater denies a call temporarily. It reports whether the request is for a known provider; otherwise it does not
// answer.
func (g *Gateway) RetryLater(w http.ResponseWriter, r *http.Request, message string) bool {
	name, _ := splitPath(r)
	up, ok := g.cfg.Providers[name]
	if ok {
		c := call{g: g, up: up}
		c.answerDenial(w, newTemporaryDenial(message))
	}
	return ok
}

// Tasks returns tasks as they are now.
type Tasks interface {
	Task(ctx context.Context, key state.TaskKey) (*state.Task, error)
}
