package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/agent/agenttest"
	"github.com/errand-bot/errand/internal/runlog"
	"github.com/google/go-cmp/cmp"
)

var (
	update = flag.Bool("update", false, "write the golden files anew")
	record = flag.Bool("record", false, "run the real programs on the model stand-in and write their output to testdata")
)

// recording is a run that the real command line was seen in.
type recording struct {
	scenario agenttest.Scenario
	spec     func(*agent.Spec)
	stopAt   string // the gate at which the run is stopped
}

func recordings() map[string]recording {
	turns := func(t ...agenttest.Turn) agenttest.Scenario { return agenttest.Scenario{{Turns: t}} }
	file := func(tool string, input map[string]any) agenttest.Turn {
		input["file_path"] = "x.txt"
		return agenttest.Turn{Calls: []agenttest.Call{{Name: tool, Input: input}}}
	}
	return map[string]recording{
		"tools": {scenario: turns(
			agenttest.Turn{Text: "Looking.", Bash: []string{"echo hello > made.txt; cat made.txt"}},
			agenttest.Turn{Bash: []string{"echo out; echo err >&2; exit 3"}},
			agenttest.Turn{Text: "Done."},
		)},
		"files": {scenario: turns(
			file("Write", map[string]any{"content": "a\n"}),
			file("Edit", map[string]any{"old_string": "a", "new_string": "b"}),
			file("Read", map[string]any{}),
			agenttest.Turn{Calls: []agenttest.Call{{Name: "Nope", Input: map[string]any{}}}},
			agenttest.Turn{Text: "done"},
		)},
		"max_turns": {
			scenario: agenttest.Scenario{{Repeat: true, Turns: []agenttest.Turn{{Bash: []string{"true"}}}}},
			spec:     func(s *agent.Spec) { s.MaxTurns = 1 },
		},
		"overloaded":      {scenario: turns(agenttest.Turn{Text: "at last", Status: 529, Times: 2})},
		"not_found":       {scenario: turns(agenttest.Turn{Status: 404, Message: "model: claude-sonnet-5"})},
		"cut_before_call": {scenario: turns(agenttest.Turn{Text: "all of it, word by word", Cut: 1, Times: 1})},
		"cut_after_call": {scenario: turns(
			agenttest.Turn{Bash: []string{"echo one", "echo two three four five six seven"}, Cut: 2, Times: 1}, agenttest.Turn{Text: "end"},
		)},
		"refusal":      {scenario: turns(agenttest.Turn{Text: "I must not.", Stop: "refusal"})},
		"rate_limited": {scenario: turns(agenttest.Turn{Status: 429, Message: "Number of requests has exceeded your limit"})},
		"no_session":   {scenario: turns(agenttest.Turn{Text: "x"}), spec: func(s *agent.Spec) { s.Resume = "0d5c1b8e-8f5e-4c39-9a44-1f2a3b4c5d6e" }},
		"interrupted":  {scenario: turns(agenttest.Turn{Text: "x", Wait: "gate"}), stopAt: "gate"},
		"schema": {
			scenario: turns(agenttest.Turn{Calls: []agenttest.Call{{Name: "StructuredOutput", Input: map[string]any{"verdict": "advance"}}}}, agenttest.Turn{Text: "done"}),
			spec: func(s *agent.Spec) {
				s.Schema = json.RawMessage(`{"type":"object","properties":{"verdict":{"type":"string"}},"required":["verdict"]}`)
			},
		},
	}
}

// do plays a recording with a harness.
func (r recording) do(t *testing.T, h agenttest.Harness) (agenttest.Outcome, agenttest.Box) {
	t.Helper()
	box := agenttest.NewBox(t)
	m := h.Model(t, r.scenario)
	spec := box.Spec(m, "errand-step: implement\nWork.")
	if r.spec != nil {
		r.spec(&spec)
	}
	p := agenttest.Start(t, h, spec)
	if r.stopAt != "" {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := m.Waiting(ctx, r.stopAt); err != nil {
			t.Fatal(err)
		}
		p.Interrupt()
	}
	return p.Wait(), box
}

// endedLine is the last line of a recording: the parser's further input.
type endedLine struct {
	Type  string      `json:"type"`
	Ended agent.Ended `json:"ended"`
}

// TestRecorded parses recorded output of the real command line and compares events and judgment with a golden file.
// With -record it runs the real program first.
func TestRecorded(t *testing.T) {
	t.Parallel()
	for name, rec := range recordings() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join("testdata", "claude", name+".jsonl")
			if *record {
				writeRecording(t, path, rec, agenttest.Harness{
					Adapter: newAdapter(t, agent.Config{Env: map[string]string{"CLAUDE_CODE_MAX_RETRIES": "2"}}), Model: startModel,
				})
			}
			events, result := readRecording(t, path, agent.NameClaude)
			golden(t, filepath.Join("testdata", "claude", name+".golden.json"), struct {
				Events []runlog.Event
				Result agent.Result
			}{events, result})
		})
	}
}

// TestSimulatedAgentMatchesRecordings plays every recording with the simulated agent and compares the results: the events with
// their texts, and the judgment.
func TestSimulatedAgentMatchesRecordings(t *testing.T) {
	t.Parallel()
	for name, rec := range recordings() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantEvents, want := readRecording(t, filepath.Join("testdata", "claude", name+".jsonl"), agent.NameClaude)
			got, _ := rec.do(t, simHarness(t))
			if diff := cmp.Diff(essence(wantEvents), essence(got.Events)); diff != "" {
				t.Errorf("events (-real +stand-in):\n%s", diff)
			}
			for _, r := range []*agent.Result{&want, &got.Result} {
				// These are each run's own.
				r.Session, r.Usage, r.CostUSD = "", runlog.Usage{}, 0
				if r.Status != agent.StatusOK {
					r.Text, r.Why, r.Said = "", "", ""
				}
			}
			if diff := cmp.Diff(want, got.Result); diff != "" {
				t.Errorf("result (-real +stand-in):\n%s", diff)
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

func writeRecording(t *testing.T, path string, rec recording, h agenttest.Harness) {
	t.Helper()
	got, box := rec.do(t, h)
	writeLines(t, path, got, box)
}

// writeLines writes the lines of a run, and how it ended.
func writeLines(t *testing.T, path string, got agenttest.Outcome, box agenttest.Box) {
	t.Helper()
	got.Ended.Exit.EndedAt = time.Time{}
	last, err := json.Marshal(endedLine{"errand_ended", got.Ended})
	if err != nil {
		t.Fatal(err)
	}
	// The box lies in a temporary directory, whose name occurs as a path and as a session's slug.
	data := bytes.Join(slices.Concat(got.Lines, [][]byte{last, nil}), []byte("\n"))
	root := filepath.Dir(box.Work)
	data = bytes.ReplaceAll(data, []byte(root), []byte("/box"))
	slug := bytes.Map(func(r rune) rune {
		if r == '/' || r == '_' || r == '.' {
			return '-'
		}
		return r
	}, []byte(root))
	data = bytes.ReplaceAll(data, slug, []byte("-box"))
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func readRecording(t *testing.T, path, adapter string) ([]runlog.Event, agent.Result) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p := newAdapter(t, agent.Config{Adapter: adapter}).NewParser()
	var events []runlog.Event
	var end endedLine
	for line := range bytes.Lines(data) {
		line = bytes.TrimRight(line, "\n")
		events = append(events, p.Line(line)...)
		if err := json.Unmarshal(line, &end); err != nil {
			t.Fatal(err)
		}
	}
	if end.Type != "errand_ended" {
		t.Fatalf("%s has no end", path)
	}
	if told, ok := p.(agent.StderrParser); ok {
		for line := range strings.Lines(end.Ended.Stderr) {
			told.StderrLine(strings.TrimRight(line, "\n"))
		}
	}
	return events, p.Exit(end.Ended)
}

// golden compares a value with a file of JSON.
func golden(t *testing.T, path string, v any) {
	t.Helper()
	got, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}
