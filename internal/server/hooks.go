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

// Hooks let a test stand between errand and what it has effects on, to fail one call or all of them
// from some moment on. Each gets the real thing and returns what is used instead; nil leaves it as it
// is. Calls to GitHub are reached by Options.Transport. The program sets none of them, and no
// configuration reaches them.
type Hooks struct {
	DB       func(kv.DB) kv.DB
	Provider func(fleet.Provider) fleet.Provider
	Runner   func(workflow.Runner) workflow.Runner
	Files    func(workflow.Files) workflow.Files
	// Transcript is what a run said, while it is followed.
	Transcript func(watch.Transcript) watch.Transcript
	// Handle does the queue's jobs.
	Handle func(queue.Handler) queue.Handler
	// Without leaves safeguards of the store out, for proofs that have to notice.
	Without []store.Safeguard
	// Upstream is what VMs reach through the tether: models and git reads.
	Upstream func(http.RoundTripper) http.RoundTripper
	// Internet is where the names that VMs ask for are looked up and called, as the zero value of it on the host's own.
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
