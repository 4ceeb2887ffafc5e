package logview

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/state"
)

var update = flag.Bool("update", false, "write the golden files anew")

// summed is a folder with the summaries of two lives of a task, and of another one.
func summed(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "transcripts"), 0o700); err != nil {
		t.Fatal(err)
	}
	first := state.Summary{
		Task: "acme/shop#1", Life: 1, Phase: state.PhaseDone, Start: noon, End: noon.Add(45 * time.Minute), Iterations: 2, Rounds: 1, Active: 9 * time.Minute,
		Money: state.Money{InputTokens: 81_000, OutputTokens: 9_400, MicroUSD: 420_000},
		Steps: []state.StepSum{
			{Step: state.RunPlan, Runs: 1, Took: 3 * time.Minute, Turns: 4, Money: state.Money{InputTokens: 40_000, OutputTokens: 2_000, MicroUSD: 120_000}},
			{Step: state.RunImplement, Runs: 1, Took: 6 * time.Minute, Turns: 12, Money: state.Money{InputTokens: 41_000, OutputTokens: 7_400, MicroUSD: 300_000}},
		},
		Phases: []state.PhaseChange{{Phase: state.PhaseQueued, At: noon, Reason: "@ada assigned it"}, {Phase: state.PhaseDone, At: noon.Add(45 * time.Minute), Reason: "pull request #8 was merged"}},
		Verdicts: []state.Verdict{
			{At: noon.Add(5 * time.Minute), Subject: "run 1, plan", Verdict: "ok"},
			{At: noon.Add(9 * time.Minute), Subject: "detailed plan 1", Verdict: "approved", By: "ada"},
			{At: noon.Add(20 * time.Minute), Subject: "run 2, implement", Verdict: "max_turns", Message: "Its turns\x1b[31m were used up."},
			{At: noon.Add(21 * time.Minute), Subject: "changes of run 2", Verdict: "refused by the push gate", Message: "protected-paths in .github/workflows/ci.yml: this path is protected"},
			{At: noon.Add(25 * time.Minute), Subject: "run 3, check", Verdict: "failed", Message: "lint failed; 2 passed; slow skipped"},
		},
		TokenMismatches: []state.TokenMismatch{{Run: 2, Adapter: "claude", ReportedInput: 410_000, ReportedOutput: 7_400, CountedInput: 41_000, CountedOutput: 7_400}},
		Reason:          "pull request #8 was merged", Pull: "https://git.example/acme/shop/pull/8",
	}
	second := state.Summary{Task: "Acme/Shop#1", Life: 2, Phase: state.PhaseImplementing, Start: noon.Add(24 * time.Hour)}
	for name, s := range map[string]state.Summary{"7-1-life-2": second, "7-1-life-1": first, "7-10-life-1": {Task: "acme/shop#10"}} {
		data, err := json.MarshalIndent(s, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "transcripts", name+summarySuffix), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestSummaries(t *testing.T) {
	t.Parallel()
	dir := summed(t)
	for name, events := range map[string]bool{"summary.txt": false, "summary.jsonl": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			if err := Summaries(&out, Query{Dir: dir, Task: "acme/shop#1", Events: events}); err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", name)
			if *update {
				if err := os.WriteFile(golden, out.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), out.String()); diff != "" {
				t.Errorf("printed (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNoSummary: a task without a summary and a file that is not one are reported.
func TestNoSummary(t *testing.T) {
	t.Parallel()
	dir := summed(t)
	err := Summaries(&bytes.Buffer{}, Query{Dir: dir, Task: "acme/shop#2"})
	if err == nil || !strings.Contains(err.Error(), "no summary of this task: acme/shop#2") {
		t.Errorf("error %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "transcripts", "7-2-life-1"+summarySuffix), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Summaries(&bytes.Buffer{}, Query{Dir: dir, Task: "acme/shop#1"}); err == nil || !strings.Contains(err.Error(), "read 7-2-life-1") {
		t.Errorf("error %v", err)
	}
}
