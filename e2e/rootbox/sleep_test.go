//go:build linux

package rootbox_test

import (
	"testing"
	"time"

	"github.com/errand-bot/errand/e2e/rootbox"
	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/internal/sim/simhetzner"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/settings"
)

// review is the model's reaction to a remark: it checks for files that only the first VM had.
const review = `  - name: review
    step: review
    turns:
      - bash: ["test -e ../untracked.txt -o -e untracked.txt && echo again >> greeting.txt && git commit -qam again && git rev-parse HEAD"]
      - text: |
          Done.

          ` + "```errand" + `
          {"outcome":"done","summary":"Said it again.","threads":[]}
          ` + "```" + `
`

// TestSuspendAndRestore: a real system's paid hour ends between pull request and review, and the agent continues its
// session on another one.
func TestSuspendAndRestore(t *testing.T) {
	t.Parallel()
	rootbox.Require(t)
	for _, mode := range []settings.SleepMode{settings.SleepArchive, settings.SleepSnapshot} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			const hour = 45 * time.Second
			l := begin(t, 10*time.Minute, "echo mine > untracked.txt", func(c *demo.Config) {
				c.Sleep, c.Script = string(mode), c.Script+review
				c.Timing.SleepBefore = 5 * time.Second
				account := c.Account
				c.Account = func(a *simhetzner.Config) { account(a); a.Period = hour }
			})
			l.world.Model.Release("work")
			before := l.wantPublished()
			eventually(t, "the suspension, with only the disk's image left", func() bool {
				task := l.task()
				return task.Suspended != nil && task.VM == nil && len(l.world.Cloud.Objects("server")) == 0
			})
			if images := len(l.world.Cloud.Objects("image")); (images > 0) != (mode == settings.SleepSnapshot) {
				t.Errorf("suspended as %s with %d images, want 1", mode, images)
			}
			_, err := l.ada().Comment(demo.Full, before.PR.Number, "@errand say it again")
			must(t, err)
			var task *state.Task
			eventually(t, "the answer", func() bool {
				task = l.task()
				return task.Round > 0 && task.Phase == state.PhasePROpen
			})
			runs := task.Runs
			if first, last := runs[0], runs[len(runs)-1]; first.Session == "" || first.Session != last.Session || first.VM == last.VM {
				t.Errorf("session %q on VM %s, then %q on VM %s", first.Session, first.VM, last.Session, last.VM)
			}
			i, err := l.ada().Issue(demo.Full, task.PR.Number)
			must(t, err)
			if data, err := l.ada().File(demo.Full, i.Pull.Head, "greeting.txt"); err != nil || string(data) != "hello\nworld\nagain\n" {
				t.Errorf("got the change %q, %v", data, err)
			}
		})
	}
}
