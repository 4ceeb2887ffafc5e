package state

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMiscount: what an agent's program says is held against what the gateway counted, within a tolerance, where both
// have counted the same thing.
func TestMiscount(t *testing.T) {
	t.Parallel()
	counted := Money{InputTokens: 50_000, OutputTokens: 4_000}
	for name, c := range map[string]struct {
		used   *Usage
		change func(*Run)
		want   bool
	}{
		"the same":                {&Usage{Input: 9_000, CacheRead: 40_000, CacheWrite: 1_000, Output: 4_000}, nil, false},
		"nothing said":            {nil, nil, false},
		"a tenth more":            {&Usage{Input: 15_000, CacheRead: 40_000, Output: 4_000}, nil, false},
		"more than that":          {&Usage{Input: 15_001, CacheRead: 40_000, Output: 4_000}, nil, true},
		"less than nine tenths":   {&Usage{Input: 4_999, CacheRead: 40_000, Output: 4_000}, nil, true},
		"output by 2,000":         {&Usage{Input: 10_000, CacheRead: 40_000, Output: 2_000}, nil, false},
		"output by more":          {&Usage{Input: 10_000, CacheRead: 40_000, Output: 1_999}, nil, true},
		"no caches told":          {&Usage{Input: 9_000, Output: 4_000}, nil, false},
		"no caches told, more":    {&Usage{Input: 60_000, Output: 4_000}, nil, true},
		"no caches told, output":  {&Usage{Input: 9_000, Output: 9_000}, nil, true},
		"the gateway saw nothing": {&Usage{Input: 5_000}, func(r *Run) { r.Metered, r.Money = false, Money{InputTokens: 5_000} }, true},
		"stopped":                 {&Usage{Output: 1}, func(r *Run) { r.Status = "interrupted" }, false},
		"at a cap":                {&Usage{Output: 1}, func(r *Run) { r.Held = &Waiting{} }, false},
		"goes on":                 {&Usage{Output: 1}, func(r *Run) { r.State = RunActive }, false},
		"checks":                  {&Usage{Output: 1}, func(r *Run) { r.Kind = RunCheck }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := Run{Seq: 3, Kind: RunImplement, State: RunEnded, Adapter: "claude", Status: "ok", Metered: true, Money: counted, Used: c.used}
			if c.change != nil {
				c.change(&r)
			}
			if got := r.Miscount(); (got != nil) != c.want {
				t.Errorf("miscount %+v", got)
			}
		})
	}
}

// TestMiscountInTheSummary: with both numbers, in words, too.
func TestMiscountInTheSummary(t *testing.T) {
	t.Parallel()
	task := &Task{Runs: []Run{
		{Seq: 1, Kind: RunPlan, State: RunEnded, Metered: true, Money: Money{InputTokens: 100}, Used: &Usage{Input: 100}},
		{Seq: 2, Kind: RunImplement, State: RunEnded, Adapter: "claude", Metered: true, Money: Money{InputTokens: 8_000, OutputTokens: 300}, Used: &Usage{Input: 1_160_000, Output: 300}},
	}}
	want := []Miscount{{Run: 2, Adapter: "claude", SaidInput: 1_160_000, SaidOutput: 300, CountedInput: 8_000, CountedOutput: 300}}
	got := task.Summary().Miscounts
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("miscounts (-want +got):\n%s", diff)
	}
	const words = "the agent's program claude says to have used 1,160,000 tokens in and 300 out; the gateway counted 8,000 and 300, and those are what it cost"
	if got[0].Words() != words {
		t.Errorf("in words: %s", got[0].Words())
	}
}
