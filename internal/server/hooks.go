package server

import (
	"net/http"

	"github.com/errand-bot/errand/internal/egress"
	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/queue"
	"github.com/errand-bot/errand/internal/watch"
	"github.com/errand-bot/errand/internal/workflow"
	"github.com/errand-bot/errand/state/kv"
	"github.com/errand-bot/errand/state/store"
)

// Hooks let a test wrap errand's dependencies, for example to make one call fail, or all calls after a
// moment. Each hook gets the real dependency and returns its replacement; nil changes nothing. For calls
// to GitHub use Options.Transport. The program sets no hooks, and the configuration cannot set them.
type Hooks struct {
	DB       func(kv.DB) kv.DB
	Provider func(fleet.Provider) fleet.Provider
	Runner   func(workflow.Runner) workflow.Runner
	Files    func(workflow.Files) workflow.Files
	// Transcript wraps the transcript of a run that is followed.
	Transcript func(watch.Transcript) watch.Transcript
	// Handle wraps the handler of the queue's jobs.
	Handle func(queue.Handler) queue.Handler
	// Without disables safeguards of the store, for tests that must detect that.
	Without []store.Safeguard
	// Upstream wraps the transport for requests of VMs through the tether: models and git reads.
	Upstream func(http.RoundTripper) http.RoundTripper
	// Internet resolves and dials the hosts that VMs request; the zero value uses the host's own resolver and network.
	Internet egress.Config
}

func (h Hooks) db(v kv.DB) kv.DB                         { return through(h.DB, v) }
func (h Hooks) provider(v fleet.Provider) fleet.Provider { return through(h.Provider, v) }
func (h Hooks) runner(v workflow.Runner) workflow.Runner { return through(h.Runner, v) }
func (h Hooks) files(v workflow.Files) workflow.Files    { return through(h.Files, v) }
func (h Hooks) handle(v queue.Handler) queue.Handler     { return through(h.Handle, v) }

// through gives v to a hook that is set.
func through[T any](hook func(T) T, v T) T {
	if hook == nil {
		return v
	}
	return hook(v)
}
