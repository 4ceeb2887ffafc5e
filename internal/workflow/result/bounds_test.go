package result_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/internal/workflow/workflowtest"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// TestHostileResult: any result that a VM reports is stored with a bounded size, a plausible cost, and no invisible
// characters.
func TestHostileResult(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", 500_000)
	block, err := json.Marshal(map[string]any{
		"outcome": "build", "title": long[:100_000], "summary": long[:100_000], "files": strings.Fields(long)[:20_000], "threads": []map[string]any{{"id": long[:50_000], "answer": long[:100_000]}},
	})
	workflowtest.Check(t, err)
	text, err := json.Marshal("Do it.\u200b\U000E0064\U000E0065\U000E006C " + long + "\n\n```errand\n" + string(block) + "\n```\n")
	workflowtest.Check(t, err)
	for _, cost := range []string{"-5", "1e300"} {
		line := fmt.Sprintf(`{"type":"result","subtype":"success","is_error":false,"num_turns":3,"result":%s,"session_id":"s-1","total_cost_usd":%s,"usage":{"input_tokens":-7,"output_tokens":-7}}`, text, cost)
		res, events := interpreted(t, state.Run{ID: "r", Kind: state.RunPlan}, runlog.Exit{Cause: runlog.CauseExited}, strings.Replace(started, "s-1", long[:1_000_000], 1), line)
		data, err := json.Marshal(res)
		workflowtest.Check(t, err)
		if len(data) > 300_000 {
			t.Errorf("got a result of %d bytes", len(data))
		}
		if m := res.Money; m.MicroUSD < 0 || m.MicroUSD > 1e12 || m.InputTokens < 0 || m.OutputTokens < 0 {
			t.Errorf("got cost %s: %+v", cost, m)
		}
		if !strings.HasPrefix(res.Text, "Do it. word") || utf8.RuneCountInString(res.Text) > 41_000 {
			t.Errorf("got text %.60q… of %d bytes", res.Text, len(res.Text))
		}
		for _, e := range events {
			if len(e.Session) > 1000 {
				t.Errorf("got a session of %d bytes", len(e.Session))
			}
		}
	}
}

// TestPlanThatCannotBeShown: a plan that would be truncated in its comment is not posted for approval.
func TestPlanThatCannotBeShown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		ok   bool
	}{
		"long, but complete":                   {strings.Repeat("A step. ", 4_900), true},
		"cut":                                  {strings.Repeat("A step. ", 6_000), false},
		"short, but much longer when rendered": {strings.Repeat("<b", 19_900), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			plan := workflowtest.Hashed(state.Plan{Kind: state.PlanPreliminary, Revision: 1, Text: c.text})
			w.Task.Plans, w.Task.Phase = []state.Plan{plan}, state.PhaseAwaitingPreliminaryApproval
			e, err := w.Try(state.JobPost, func(j *state.Job) { j.Post = &state.Post{Kind: state.PostPlan, Hash: plan.Hash} })
			if c.ok {
				workflowtest.Check(t, err)
				if e.Kind() != event.KindPosted {
					t.Errorf("got event %+v", e)
				}
				return
			}
			workflowtest.WantProblem(t, err, "agent", true)
			if len(w.Ours(w.Task.Key.Issue)) != 0 {
				t.Error("the plan is posted")
			}
		})
	}
}

// TestLostVM: the comment says that the work was lost with its VM, instead of an internal error.
func TestLostVM(t *testing.T) {
	t.Parallel()
	for _, lost := range []error{fleet.ErrEnded, fleet.ErrNotFound} {
		w := workflowtest.New(t)
		w.Task.Phase, w.Task.Step, w.Task.VM = state.PhaseImplementing, state.JobCollect, &w.Host.VM
		w.Host.Errs["Collect"] = fmt.Errorf("reach VM vm-1: %w", lost)
		_, err := w.Try(state.JobCollect)
		workflowtest.WantProblem(t, err, state.ClassVM, true)
	}
}
