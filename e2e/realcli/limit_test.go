package realcli

import (
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/internal/heavytest"
	"github.com/errand-bot/errand/state"
)

// TestHeavyLimit: real programs stop at the first answer that reports a long rate limit, instead of retrying or
// sleeping until its end, and the status comment explains it.
func TestHeavyLimit(t *testing.T) {
	t.Parallel()
	heavytest.Mark(t)
	for _, name := range []string{"claude", "codex"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := programs()[name]
			l := startLife(t, program(t, name), "limit-"+name+".yaml", func(c *demo.Config) {
				c.Adapter, c.Model = p.adapter, p.model
				c.Files = map[string]string{"slug.go": "package slug\n", ".errand.yml": "plan: none\n"}
			})
			issue := l.assign("Say more", "There is too little.")
			task := l.until(issue, "the interruption", func(t *state.Task) bool { return t.Phase == state.PhaseInterrupted })
			if n := len(l.Model.Requests()); n != 1 {
				t.Errorf("the model received %d requests, want 1", n)
			}
			run := task.Runs[len(task.Runs)-1]
			if run.Status != "rate_limited" || task.Waiting == nil || task.Waiting.Kind != state.WaitLimit || task.Waiting.Until.IsZero() {
				t.Errorf("run %s (%s), waiting %+v", run.Status, run.Message, task.Waiting)
			}
			if !strings.Contains(run.Message, "has used up its limit") {
				t.Errorf("got comment %q", run.Message)
			}
		})
	}
}
