// Package gateway admits the calls that agents make to models, forwards them to the models' providers with errand's key,
// and accounts for their cost.
//
// A call counts from before it is forwarded until its cost is stored, so that the caps hold for concurrent calls, too. From
// before it is forwarded it has a reservation in the store, so that it is charged exactly once even if errand dies or the disk is
// full meanwhile.
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

// Provider is a model provider's API.
type Provider struct {
	BaseURL string // without a slash at the end
	Key     string
	// Header carries the key: "X-Api-Key", or "Authorization" for a bearer token.
	Header string
	// Subscription takes the place of Key and Header. What is called on it costs nothing by the call.
	Subscription *subscription.Source
	API          modelapi.API
	// WebTools lets agents have the provider reach other hosts for them, by tools of its own and by addresses of content.
	WebTools bool
}

// Ledger stores what runs cost, and knows the caps of all tasks together.
type Ledger interface {
	// Record adds a usage record to a run and its task, and deletes the call's reservation in the same transaction. If that
	// reservation does not exist any more, the error is [store.ErrSpent].
	Record(ctx context.Context, u UsageRecord) error
	// CapReached returns what all runs have to wait for because a cap of all tasks is reached, or leaves less than need; nil if there
	// is no such cap. InFlight is added to what was spent. Free means that the call is made on a subscription: caps on cost do not
	// count then.
	CapReached(ctx context.Context, inFlight, need state.Money, free bool) (*state.Waiting, error)
	// Left returns what these caps leave.
	Left(ctx context.Context, inFlight state.Money, free bool) (state.Left, error)
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

// Journal keeps the reservations of calls, from before a call is passed on until it is booked, over restarts.
type Journal interface {
	Reserve(ctx context.Context, r store.Reservation) error
	Release(ctx context.Context, id string) error
	Reservations(ctx context.Context) ([]store.Reservation, error)
}

// Config configures a Gateway.
type Config struct {
	Tasks Tasks
	// Providers are the providers' APIs by name: /llm/NAME/… goes to Models[NAME].
	Providers map[string]Provider
	// Prices say what answers cost; Ledger keeps it. Journal keeps what calls in flight may cost; nil keeps nothing.
	Prices  modelapi.Prices
	Ledger  Ledger
	Journal Journal
	// AllowedModels says which models a task's run may call; nil means the one that it was started with.
	AllowedModels func(t *state.Task) AllowedModels
	// ProviderStates remembers providers that have a limit or refuse the key; nil remembers nothing. Backoff is how
	// long it takes until a refused key is tried again for the first time.
	ProviderStates ProviderStates
	Backoff        time.Duration
	Now            func() time.Time // nil is the clock
	// IdleTimeout is how long a provider may say nothing, before an answer or within one; 0 is ten minutes.
	IdleTimeout time.Duration
	// QueueTimeout is how long a call of a model waits for others before its program is told to ask again; 0 is 20 s.
	QueueTimeout time.Duration
	Log          zerolog.Logger
	// Denied hears of what a call asked for and did not get; nil means nobody does.
	Denied func(t *state.Task, r egress.Request)
	// Transport sends the calls to their providers.
	Transport http.RoundTripper
}

// prefix is the beginning of the gateway's paths. The provider's name follows, then the path of its API.
const prefix = "/llm/"

// Gateway passes calls of models on to their providers.
type Gateway struct {
	cfg      Config
	inFlight inFlightCalls
	idle     idleTimeouts
	turns    turnCounter
	denials  denialLog
	probing  sync.Mutex // one key is tried at a time
}

// New returns a Gateway.
func New(cfg Config) *Gateway {
	return &Gateway{cfg: cfg}
}

// splitPath returns the provider's name in a request's path, and the path after it.
func splitPath(r *http.Request) (provider, rest string) {
	provider, rest, found := strings.Cut(strings.TrimPrefix(r.URL.Path, prefix), "/")
	if found {
		rest = "/" + rest
	}
	return provider, rest
}

// RetryLater tells the program that called a provider to ask again soon. It reports whether the provider is known.
func (g *Gateway) RetryLater(w http.ResponseWriter, r *http.Request, words string) bool {
	name, _ := splitPath(r)
	up, ok := g.cfg.Providers[name]
	if ok {
		c := call{g: g, up: up}
		c.answerDenial(w, notNow(words))
	}
	return ok
}

// Tasks tells what a task may reach now.
type Tasks interface {
	Task(ctx context.Context, key state.TaskKey) (*state.Task, error)
}
