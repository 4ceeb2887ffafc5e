package agenttest

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/runlog"
	"github.com/google/go-cmp/cmp"
)

// Recording describes a run whose output is stored under testdata, as the real program printed it.
type Recording struct {
	Scenario Scenario
	Spec     func(*agent.Spec)
	StopAt   string // the gate at which the run is stopped
}

// Recordings returns the runs that are recorded for every program that supports them.
func Recordings() map[string]Recording {
	turns := func(t ...Turn) Scenario { return Scenario{{Turns: t}} }
	file := func(tool string, input map[string]any) Turn {
		input["file_path"] = "x.txt"
		return Turn{Calls: []Call{{Name: tool, Input: input}}}
	}
	return map[string]Recording{
		"tools": {Scenario: turns(
			Turn{Text: "Looking.", Bash: []string{"echo hello > made.txt; cat made.txt"}},
			Turn{Bash: []string{"echo out; echo err >&2; exit 3"}},
			Turn{Text: "Done."},
		)},
		"files": {Scenario: turns(
			file("Write", map[string]any{"content": "a\n"}),
			file("Edit", map[string]any{"old_string": "a", "new_string": "b"}),
			file("Read", map[string]any{}),
			Turn{Calls: []Call{{Name: "Nope", Input: map[string]any{}}}},
			Turn{Text: "done"},
		)},
		"max_turns": {
			Scenario: Scenario{{Repeat: true, Turns: []Turn{{Bash: []string{"true"}}}}},
			Spec:     func(s *agent.Spec) { s.MaxTurns = 1 },
		},
		"overloaded":      {Scenario: turns(Turn{Text: "at last", Status: 529, Times: 2})},
		"not_found":       {Scenario: turns(Turn{Status: 404, Message: "model: claude-sonnet-5"})},
		"cut_before_call": {Scenario: turns(Turn{Text: "all of it, word by word", Cut: 1, Times: 1})},
		"cut_after_call": {Scenario: turns(
			Turn{Bash: []string{"echo one", "echo two three four five six seven"}, Cut: 2, Times: 1}, Turn{Text: "end"},
		)},
		"refusal":      {Scenario: turns(Turn{Text: "I must not.", Stop: "refusal"})},
		"rate_limited": {Scenario: turns(Turn{Status: 429, Message: "Number of requests has exceeded your limit"})},
		"no_session":   {Scenario: turns(Turn{Text: "x"}), Spec: func(s *agent.Spec) { s.Resume = "0d5c1b8e-8f5e-4c39-9a44-1f2a3b4c5d6e" }},
		"interrupted":  {Scenario: turns(Turn{Text: "x", Wait: "gate"}), StopAt: "gate"},
		"schema": {
			Scenario: turns(
				Turn{Calls: []Call{{Name: "StructuredOutput", Input: map[string]any{"verdict": "advance"}}}},
				Turn{Text: "done"},
			),
			Spec: func(s *agent.Spec) {
				s.Schema = json.RawMessage(`{"type":"object","properties":{"verdict":{"type":"string"}},"required":["verdict"]}`)
			},
		},
	}
}

// Play runs the recording's scenario with a harness.
func (r Recording) Play(t *testing.T, h Harness) (Outcome, Box) {
	t.Helper()
	box := NewBox(t)
	m := h.Model(t, r.Scenario)
	spec := box.Spec(m, "errand-step: implement\nWork.")
	if r.Spec != nil {
		r.Spec(&spec)
	}
	p := Start(t, h, spec)
	if r.StopAt != "" {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := m.Waiting(ctx, r.StopAt); err != nil {
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

// Write runs the real program with a harness and stores its output.
func (r Recording) Write(t *testing.T, path string, h Harness) {
	t.Helper()
	got, box := r.Play(t, h)
	WriteRecording(t, path, got, box)
}

// WriteRecording stores the lines of a run, and how it ended.
func WriteRecording(t *testing.T, path string, got Outcome, box Box) {
	t.Helper()
	got.Ended.Exit.EndedAt = time.Time{}
	last, err := json.Marshal(endedLine{"errand_ended", got.Ended})
	if err != nil {
		t.Fatal(err)
	}
	// The box is in a temporary directory, whose name occurs as a path and as a session's slug.
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

// ReadRecording passes a recording to an adapter's parser.
func ReadRecording(t *testing.T, path string, a agent.Adapter) ([]runlog.Event, agent.Result) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p := a.NewParser()
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
	if p, ok := p.(agent.StderrParser); ok {
		for line := range strings.Lines(end.Ended.Stderr) {
			p.StderrLine(strings.TrimRight(line, "\n"))
		}
	}
	return events, p.Exit(end.Ended)
}

// CheckRecording reads NAME.jsonl in testdata and compares its events and the judgment with NAME.golden.json, which it
// writes first if update is set. It returns the judgment.
func CheckRecording(t *testing.T, name string, a agent.Adapter, update bool) agent.Result {
	t.Helper()
	events, result := ReadRecording(t, filepath.Join("testdata", name+".jsonl"), a)
	Golden(t, filepath.Join("testdata", name+".golden.json"), struct {
		Events []runlog.Event
		Result agent.Result
	}{events, result}, update)
	return result
}

// Golden compares a value with a file of JSON, which it writes first if update is set.
func Golden(t *testing.T, path string, v any, update bool) {
	t.Helper()
	got, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	if update {
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
