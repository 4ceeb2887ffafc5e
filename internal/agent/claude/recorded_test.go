package claude_test

import (
	"flag"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/agent/agenttest"
	"github.com/errand-bot/errand/internal/agent/claude"
	"github.com/errand-bot/errand/internal/runlog"
)

var (
	update = flag.Bool("update", false, "write the golden files")
	record = flag.Bool("record", false, "run the real program on the simulated model and write its output to testdata")
)

// TestRecorded parses recorded output of the real command line and compares events and judgment with a golden file.
// With -record it runs the real program first.
func TestRecorded(t *testing.T) {
	t.Parallel()
	for name, rec := range agenttest.Recordings() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if *record {
				rec.Write(t, filepath.Join("testdata", name+".jsonl"), agenttest.Harness{
					Adapter: claude.New(agent.Program{Command: []string{"claude"}, Env: map[string]string{"CLAUDE_CODE_MAX_RETRIES": "2"}}),
					Model:   agenttest.StartModel(claude.DefaultModel),
				})
			}
			agenttest.CheckRecording(t, name, claude.New(agent.Program{}), *update)
		})
	}
}

// TestSimulatedAgentMatchesRecordings plays every recording with the simulated agent and compares the results: the events with
// their texts, and the judgment.
func TestSimulatedAgentMatchesRecordings(t *testing.T) {
	t.Parallel()
	for name, rec := range agenttest.Recordings() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantEvents, want := agenttest.ReadRecording(t, filepath.Join("testdata", name+".jsonl"), claude.New(agent.Program{}))
			got, _ := rec.Play(t, simHarness(t))
			if diff := cmp.Diff(essence(wantEvents), essence(got.Events)); diff != "" {
				t.Errorf("events (-real +simulated):\n%s", diff)
			}
			for _, r := range []*agent.Result{&want, &got.Result} {
				// These are each run's own.
				r.Session, r.Usage, r.CostUSD = "", runlog.Usage{}, 0
				if r.Status != agent.StatusOK {
					r.Text, r.Reason, r.Said = "", "", ""
				}
			}
			if diff := cmp.Diff(want, got.Result); diff != "" {
				t.Errorf("result (-real +simulated):\n%s", diff)
			}
		})
	}
}

// essence removes from events the parts that differ between runs, and the wording of failures. It also removes the last
// lines of a stopped run, which the real program does not always print.
func essence(events []runlog.Event) []runlog.Event {
	var out []runlog.Event
	for _, e := range events {
		if e.IsError && (e.Kind == runlog.KindNotice || e.Kind == runlog.KindResult) && e.Text != "" {
			e.Text = "(a failure)"
		}
		if e.Kind == runlog.KindUsage || e.Kind == runlog.KindResult && e.Text == "" {
			continue
		}
		e.Session, e.ToolID, e.Input, e.Delay = "", "", "", 0
		out = append(out, e)
	}
	return out
}
