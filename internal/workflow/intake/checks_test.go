package intake_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/workflow"
	"github.com/errand-bot/errand/internal/workflow/workflowtest"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// TestChecksOfTheHead: the checks of the head that errand knows are judged, and of no other. GitHub may need a moment to show it.
func TestChecksOfTheHead(t *testing.T) {
	t.Parallel()
	const early = "the only check succeeded; none is required, so more may appear: the result counts once nothing has been reported for 30 min"
	for name, c := range map[string]struct {
		reports map[string]string // conclusions by name
		needs   string
		pushed  bool          // GitHub shows another head
		since   time.Duration // how long ago checks were noticed that are pending; 0 for now
		want    event.ChecksRead
		again   time.Duration // from now; 0 for never
	}{
		"nothing":                   {},
		"required":                  {reports: map[string]string{"build": "success", "docs": "failure"}, needs: "build", want: event.ChecksRead{Checks: "success", Reason: "the only required check succeeded", Optional: "docs"}},
		"missing":                   {needs: "build", want: event.ChecksRead{Checks: "pending", Pending: true, Reason: "1 of 1 required check has not been reported: build"}, again: 30 * time.Minute},
		"missing for long":          {needs: "build", want: event.ChecksRead{Checks: "pending", Pending: true, Reason: "1 of 1 required check has not been reported: build", Reads: 3}, again: 4 * time.Hour},
		"missing for days":          {needs: "build", want: event.ChecksRead{Checks: "pending", Pending: true, Reason: "1 of 1 required check has not been reported: build", Reads: 29}, again: 16 * time.Hour},
		"running":                   {reports: map[string]string{"build": ""}, needs: "build", want: event.ChecksRead{Checks: "pending", Pending: true, Reason: "1 of 1 required check is not complete: build"}, again: 30 * time.Minute},
		"missing for 89 hours":      {needs: "build", since: 89 * time.Hour, want: event.ChecksRead{Checks: "pending", Pending: true, Reason: "1 of 1 required check has not been reported: build", Reads: 8}, again: time.Hour},
		"missing for 90 hours":      {needs: "build", since: 90 * time.Hour, want: event.ChecksRead{Checks: "pending", Pending: true, Settled: true, Reason: "1 of 1 required check has not been reported: build", Reads: 8}, again: 16 * time.Hour},
		"failed, one runs":          {reports: map[string]string{"build": "failure", "lint": ""}, since: 14 * time.Hour, want: event.ChecksRead{Checks: "failure", Pending: true, Reason: "1 of 2 checks failed: build; 1 is not complete: lint", Reads: 8}, again: time.Hour},
		"failed, one runs for long": {reports: map[string]string{"build": "failure", "lint": ""}, since: 15 * time.Hour, want: event.ChecksRead{Checks: "failure", Pending: true, Settled: true, Reason: "1 of 2 checks failed: build; 1 is not complete: lint", Reads: 8}, again: 16 * time.Hour},
		"none required":             {reports: map[string]string{"build": "success"}, want: event.ChecksRead{Checks: "pending", Reason: early}, again: 30 * time.Minute},
		"DCO":                       {reports: map[string]string{"DCO": "failure"}, want: event.ChecksRead{Checks: "failure", Reason: "1 of 1 check failed: DCO", DCO: true, Settled: true}},
		"pushed":                    {reports: map[string]string{"build": "success"}, needs: "build", pushed: true, want: event.ChecksRead{Stale: true, Reads: 4}, again: 10 * time.Second},
		"pushed before":             {reports: map[string]string{"build": "success"}, needs: "build", pushed: true, want: event.ChecksRead{Stale: true, Reads: 5}, again: 30 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t, func(cfg *workflow.Config) { cfg.ChecksQuiet = 30 * time.Minute })
			w.OpenPull()
			head := w.Task.Branch.Head
			if c.since > 0 {
				w.Task.PR.Undecided = time.Now().Add(-c.since)
			}
			if c.needs != "" {
				workflowtest.Check(t, w.RequireChecks(workflowtest.RepoName, "main", simgithub.RequiredCheck{Context: c.needs}))
			}
			for check, conclusion := range c.reports {
				workflowtest.Check(t, w.CheckRun(workflowtest.RepoName, head, check, conclusion, ""))
			}
			if c.pushed {
				w.Push("bob", w.Task.Branch.Name, map[string]string{"NEWS": "news\n"})
			}
			e, err := w.Try(state.JobChecks, workflowtest.Args(state.JobArgs{Reads: c.want.Reads}))
			workflowtest.Check(t, err)
			got, _ := e.Payload.(event.ChecksRead)
			c.want.Head = head
			if in := time.Until(got.Again); got.Again.IsZero() != (c.again == 0) || c.again > 0 && (in > c.again || in < c.again-time.Minute) {
				t.Errorf("to be read again at %s", got.Again)
			}
			got.Again = time.Time{}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
