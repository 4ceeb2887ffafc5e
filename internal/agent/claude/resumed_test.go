package claude_test

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/agent/agenttest"
	"github.com/errand-bot/errand/internal/agent/claude"
	"github.com/errand-bot/errand/internal/runlog"
)

// TestResumedRecorded: the usage that Claude Code reports for a resumed session is attributed to this run only,
// for a version that accumulates (2.1.330) and one that does not (2.1.197). With -record the program in PATH is run
// first; its version determines the file to write.
func TestResumedRecorded(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]runlog.Usage{
		"2.1.197": {Input: 56, CacheRead: 13456, CacheWrite: 40, Output: 14},
		"2.1.330": {Input: 78, CacheRead: 15294, CacheWrite: 30, Output: 14},
	} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join("testdata", "resumed-"+version+".jsonl")
			if *record {
				recordResumed(t, path, version)
			}
			got := agenttest.CheckRecording(t, "resumed-"+version, claude.New(agent.Program{}), *update)
			if diff := cmp.Diff(want, got.Usage); diff != "" && !*record {
				t.Errorf("usage (-want +got):\n%s", diff)
			}
		})
	}
}

// recordResumed writes the second run of a session, if the program is of this version.
func recordResumed(t *testing.T, path, version string) {
	t.Helper()
	h := agenttest.Harness{Adapter: claude.New(agent.Program{Command: []string{"claude"}, Env: map[string]string{"CLAUDE_CODE_MAX_RETRIES": "0"}}), Model: agenttest.StartModel(claude.DefaultModel)}
	box := agenttest.NewBox(t)
	m := h.Model(t, agenttest.Scenario{
		{Prompt: "First", Turns: []agenttest.Turn{{Text: "Looking.", Bash: []string{"echo hi"}}, {Text: "Done."}}},
		{Prompt: "Second", Turns: []agenttest.Turn{{Text: "Looking again.", Bash: []string{"echo hi"}}, {Text: "Done again."}}},
	})
	spec := box.Spec(m, "errand-step: implement\nFirst.")
	first := agenttest.Do(t, h, spec)
	if !versionOf(first.Lines, version) {
		return
	}
	before := m.Usage()
	spec.Prompt, spec.Resume, spec.Session = "errand-step: implement\nSecond.", first.Result.Session, ""
	second := agenttest.Do(t, h, spec)
	second.Ended.Prior = &before
	agenttest.WriteRecording(t, path, second, box)
	_, got := agenttest.ReadRecording(t, path, claude.New(agent.Program{}))
	after := m.Usage()
	want := runlog.Usage{
		Input: after.Input - before.Input, Output: after.Output - before.Output,
		CacheRead: after.CacheRead - before.CacheRead, CacheWrite: after.CacheWrite - before.CacheWrite,
	}
	if diff := cmp.Diff(want, got.Usage); diff != "" {
		t.Errorf("the model counted something else (-want +got):\n%s", diff)
	}
}

// TestUsageOfOneRun, in whichever way the program counts.
func TestUsageOfOneRun(t *testing.T) {
	t.Parallel()
	used := func(field string, n string) string {
		total := ""
		if field == "modelUsage" {
			total = `"total_cost_usd":` + n + `,`
		}
		return total + `"` + field + `":{"m":{"inputTokens":` + n + `,"outputTokens":` + n + `,"costUSD":` + n + `}},`
	}
	const turn = `"usage":{"input_tokens":5,"output_tokens":5},`
	for name, tc := range map[string]struct {
		lines []string
		ended agent.Ended
		want  int64
	}{
		"a new session":                       {[]string{result(turn + used("modelUsage", "5"))}, agent.Ended{}, 5},
		"a new one, with a helper":            {[]string{result(turn + used("modelUsage", "7"))}, agent.Ended{}, 7},
		"counted on, said apart":              {[]string{result(turn + used("modelUsage", "25") + used("model_usage_since_last_result", "5"))}, agent.Ended{WantSession: "s1", Prior: usage(20)}, 5},
		"reported apart, unknown earlier use": {[]string{result(turn + used("modelUsage", "25") + used("model_usage_since_last_result", "5"))}, agent.Ended{WantSession: "s1"}, 5},
		"said apart, in two results":          {[]string{result(used("modelUsage", "25") + used("model_usage_since_last_result", "5")), result(used("modelUsage", "28") + used("model_usage_since_last_result", "3"))}, agent.Ended{WantSession: "s1", Prior: usage(20)}, 8},
		"counted on, not said apart":          {[]string{result(turn + used("modelUsage", "25"))}, agent.Ended{WantSession: "s1", Prior: usage(20)}, 5},
		"not counted on":                      {[]string{result(turn + used("modelUsage", "5"))}, agent.Ended{WantSession: "s1", Prior: usage(20)}, 5},
		"not counted on, more than before":    {[]string{result(`"usage":{"input_tokens":50,"output_tokens":50},` + used("modelUsage", "50"))}, agent.Ended{WantSession: "s1", Prior: usage(20)}, 50},
		"earlier use is unknown":              {[]string{result(turn + used("modelUsage", "25"))}, agent.Ended{WantSession: "s1"}, 0},
		"the earlier runs have used nothing":  {[]string{result(turn + used("modelUsage", "5"))}, agent.Ended{WantSession: "s1", Prior: usage(0)}, 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := claude.New(agent.Program{Command: []string{"claude"}}).NewParser()
			for _, l := range tc.lines {
				p.Line([]byte(l))
			}
			got := p.Exit(tc.ended)
			if got.Status != agent.StatusOK || got.Usage != *usage(tc.want) {
				t.Errorf("%s, used %+v, want %d", got.Status, got.Usage, tc.want)
			}
			if got.CostUSD != float64(tc.want) { // a dollar for each token of input, and one of output
				t.Errorf("it has cost $%.2f, want $%d", got.CostUSD, tc.want)
			}
		})
	}
}

func usage(n int64) *runlog.Usage { return &runlog.Usage{Input: n, Output: n} }

// versionOf reports whether the program that printed the lines is of this version.
func versionOf(lines [][]byte, version string) bool {
	for _, l := range lines {
		if bytes.Contains(l, []byte(`"claude_code_version":"`+version+`"`)) {
			return true
		}
	}
	return false
}
