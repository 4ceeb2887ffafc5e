package intake_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/workflow/workflowtest"
	"github.com/errand-bot/errand/state"
)

// TestAllMissingPermissionsAreNamed: all missing permissions that a task needs are named at once; permissions that
// another owner does not grant do not matter.
func TestAllMissingPermissionsAreNamed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		here, elsewhere map[string]string // permissions that differ from the requested ones
		want            string
	}{
		"nothing":          {nil, nil, ""},
		"one":              {map[string]string{"contents": "read"}, nil, "the App lacks permissions here: `contents: write` (granted: `read`)"},
		"two":              {map[string]string{"contents": "read", "pull_requests": ""}, nil, "the App lacks permissions here: `pull_requests: write` (granted: `none`), `contents: write` (granted: `read`)"},
		"an optional one":  {map[string]string{"checks": ""}, nil, ""},
		"one and optional": {map[string]string{"contents": "read", "checks": ""}, nil, "the App lacks permissions here: `contents: write` (granted: `read`)"},
		"elsewhere":        {nil, map[string]string{"contents": "read", "pull_requests": ""}, ""},
		"another here":     {map[string]string{"pull_requests": "read"}, map[string]string{"contents": "read"}, "the App lacks permissions here: `pull_requests: write` (granted: `read`)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			workflowtest.Check(t, workflowtest.Err(w.SeedRepo(simgithub.RepoSeed{Owner: "initech", Name: "slug", Files: map[string]string{"README.md": "# slug\n"}})))
			workflowtest.Check(t, workflowtest.Err(w.Install("initech/slug")))
			for owner, change := range map[string]map[string]string{"acme": c.here, "initech": c.elsewhere} {
				perms := w.App().Permissions
				for p, level := range change {
					if perms[p] = level; level == "" {
						delete(perms, p)
					}
				}
				w.GrantPermissions(owner, perms)
			}
			w.Forge.InvalidateTokens()
			workflowtest.Check(t, workflowtest.Err(w.Forge.Installations(t.Context()))) // both are cached
			w.Task.Phase = state.PhasePreliminaryPlanning
			w.Launching(state.RunPreliminary)
			e := w.Do(state.JobLaunch)
			got := ""
			if e.Waiting() != nil {
				got = e.Waiting().Detail
			}
			if diff := cmp.Diff(c.want, got); diff != "" || (got == "") != (len(w.Host.Started) == 1) {
				t.Errorf("got %d runs; waiting (-want +got):\n%s", len(w.Host.Started), diff)
			}
		})
	}
}
