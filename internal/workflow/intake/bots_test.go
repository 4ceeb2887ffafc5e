package intake_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/workflow"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/workflow/workflowtest"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// generous returns a GitHub on which all accounts have write access, including bots.
type generous struct{ *forge.Forge }

func (generous) Permission(context.Context, forge.Repo, string, int64) (state.Permission, error) {
	return state.PermissionWrite, nil
}

// TestOnlyListedBotsAreTrusted: of two bots with the same permission, the listed one may direct errand and its text is
// read; the other one is ignored, even if its name is similar.
func TestOnlyListedBotsAreTrusted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		allow, users []string
		may          []string
	}{
		"none listed":           {nil, nil, nil},
		"one":                   {[]string{"ci[bot]"}, nil, []string{"ci[bot]"}},
		"the other":             {[]string{"CI-2[bot]"}, nil, []string{"ci-2[bot]"}},
		"without the suffix":    {[]string{"ci"}, nil, []string{"ci[bot]"}},
		"both":                  {[]string{"ci-2[bot]", "ci[bot]"}, nil, []string{"ci[bot]", "ci-2[bot]"}},
		"a third":               {[]string{"renovate[bot]", ""}, nil, nil},
		"patterns do not match": {[]string{"*", "ci*", "*[bot]", "[bot]"}, nil, nil},
		"as people":             {nil, []string{"ci[bot]", "ci-2"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			a, _ := w.Reviewed()
			cfg := w.Config
			cfg.AllowBots, cfg.AllowUsers, cfg.GitHub = c.allow, c.users, generous{w.Forge}
			w.Steps = workflow.New(cfg)
			for _, login := range []string{"ci[bot]", "ci-2[bot]", "renovate-2[bot]"} { // the listed one is checked first and last
				w.AddBot(login)
				workflowtest.Check(t, workflowtest.Err(w.As(login).ReplyToThread(workflowtest.RepoName, w.Task.PR.Number, a.ID, "By "+login+".")))
			}
			key := w.Task.Key
			for _, login := range []string{"ci[bot]", "ci-2[bot]", "renovate-2[bot]", "ci[bot]"} {
				in := event.Event{Task: key, ID: "x", By: w.Person(login), Payload: event.Triggered{}}
				may := slices.Contains(c.may, login)
				if e := w.Do(state.JobVet, workflowtest.Vets(in)); e.Permission.CanWrite() != may {
					t.Errorf("got permission %[2]q of %[1]s", login, e.Permission)
				}
				if got := event.Of[event.Gathered](w.Do(state.JobGather)).Feedback[0].Body; strings.Contains(got, "By "+login+".") != may {
					t.Errorf("the agent gets of %s:\n%s", login, got)
				}
			}
		})
	}
}
