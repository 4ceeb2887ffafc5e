package machine

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/state"
)

// The tokens reported by an agent's program are compared with the gateway's count, within a tolerance, if both count
// the same.
func TestTokenMismatch(t *testing.T) {
	t.Parallel()
	counted := state.Money{InputTokens: 50_000, OutputTokens: 4_000}
	for name, c := range map[string]struct {
		used   *state.Usage
		change func(*state.Run)
		want   bool
	}{
		"the same":                   {&state.Usage{Input: 9_000, CacheRead: 40_000, CacheWrite: 1_000, Output: 4_000}, nil, false},
		"nothing said":               {nil, nil, false},
		"a tenth more":               {&state.Usage{Input: 15_000, CacheRead: 40_000, Output: 4_000}, nil, false},
		"more than that":             {&state.Usage{Input: 15_001, CacheRead: 40_000, Output: 4_000}, nil, true},
		"less than nine tenths":      {&state.Usage{Input: 4_999, CacheRead: 40_000, Output: 4_000}, nil, true},
		"output by 2,000":            {&state.Usage{Input: 10_000, CacheRead: 40_000, Output: 2_000}, nil, false},
		"output by more":             {&state.Usage{Input: 10_000, CacheRead: 40_000, Output: 1_999}, nil, true},
		"no caches reported":         {&state.Usage{Input: 9_000, Output: 4_000}, nil, false},
		"no caches reported, more":   {&state.Usage{Input: 60_000, Output: 4_000}, nil, true},
		"no caches reported, output": {&state.Usage{Input: 9_000, Output: 9_000}, nil, true},
		"the gateway saw nothing":    {&state.Usage{Input: 5_000}, func(r *state.Run) { r.Metered, r.Money = false, state.Money{InputTokens: 5_000} }, true},
		"stopped":                    {&state.Usage{Output: 1}, func(r *state.Run) { r.Status = state.StatusInterrupted }, false},
		"at a cap":                   {&state.Usage{Output: 1}, func(r *state.Run) { r.RunDenial = &state.Waiting{} }, false},
		"goes on":                    {&state.Usage{Output: 1}, func(r *state.Run) { r.State = state.RunActive }, false},
		"checks":                     {&state.Usage{Output: 1}, func(r *state.Run) { r.Kind = state.RunCheck }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := state.Run{Seq: 3, Kind: state.RunImplement, State: state.RunEnded, RunLaunch: state.RunLaunch{Adapter: "claude"}, RunVerdict: state.RunVerdict{Status: state.StatusOK}, RunUsage: state.RunUsage{Metered: true, Money: counted, Used: c.used}}
			if c.change != nil {
				c.change(&r)
			}
			if got := r.TokenMismatch(); (got != nil) != c.want {
				t.Errorf("got miscount %+v", got)
			}
		})
	}
}

// The summary contains both counts, also as a sentence.
func TestTokenMismatchInSummary(t *testing.T) {
	t.Parallel()
	task := &state.Task{TaskRuns: state.TaskRuns{Runs: []state.Run{
		{Seq: 1, Kind: state.RunPlan, State: state.RunEnded, RunUsage: state.RunUsage{Metered: true, Money: state.Money{InputTokens: 100}, Used: &state.Usage{Input: 100}}},
		{Seq: 2, Kind: state.RunImplement, State: state.RunEnded, RunLaunch: state.RunLaunch{Adapter: "claude"}, RunUsage: state.RunUsage{Metered: true, Money: state.Money{InputTokens: 8_000, OutputTokens: 300}, Used: &state.Usage{Input: 1_160_000, Output: 300}}},
	}}}
	want := []state.TokenMismatch{{Run: 2, Adapter: "claude", ReportedInput: 1_160_000, ReportedOutput: 300, CountedInput: 8_000, CountedOutput: 300}}
	got := task.Summary().TokenMismatches
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("miscounts (-want +got):\n%s", diff)
	}
	const words = "the agent's program claude reported 1,160,000 input and 300 output tokens; the gateway counted 8,000 and 300, and the cost is based on its count"
	if got[0].Sentence() != words {
		t.Errorf("in words: %s", got[0].Sentence())
	}
}
