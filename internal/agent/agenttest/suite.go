package agenttest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/agent/command"
	"github.com/errand-bot/errand/internal/runlog"
	"github.com/google/go-cmp/cmp"
)

// unknownID is the id of a session that does not exist.
const unknownID = "0d5c1b8e-8f5e-4c39-9a44-1f2a3b4c5d6e"

func testAnswer(t *testing.T, h Harness) {
	box := NewBox(t)
	spec := box.Spec(h.Model(t, one(Turn{Text: "It is 4."})), "What is 2+2?")
	spec.System = "Always be brief."
	r := Do(t, h, spec)
	need(t, r, agent.StatusOK)
	if r.Result.Text != "It is 4." {
		t.Errorf("text %q", r.Result.Text)
	}
	if r.Events[0].Kind != runlog.KindStarted {
		t.Errorf("the first event is %q, want started", r.Events[0].Kind)
	}
	if n := kinds(r.Events); n[runlog.KindText] != 1 || n[runlog.KindResult] != 1 {
		t.Errorf("events %v, want one text and one result", n)
	}
}

func testTools(t *testing.T, h Harness) {
	box := NewBox(t)
	m := h.Model(t, one(
		Turn{Text: "Looking.", Bash: []string{"echo hello > made.txt; cat made.txt"}},
		Turn{Bash: []string{"echo err >&2; exit 3"}},
		Turn{Text: "Done."},
	))
	r := Do(t, h, box.Spec(m, "Make a file."))
	need(t, r, agent.StatusOK)
	if got := box.Read("made.txt"); got != "hello\n" {
		t.Errorf("made.txt holds %q", got)
	}
	var got []string
	for _, e := range r.Events {
		if e.Kind == runlog.KindToolResult || e.Kind == runlog.KindToolUse {
			got = append(got, fmt.Sprintf("%s %v %s", e.Kind, e.IsError, e.Text))
		}
	}
	want := []string{"tool_use false ", "tool_result false hello", "tool_use false ", "tool_result true Exit code 3\nerr"}
	if h.NoExitCodes {
		want[3] = "tool_result false err"
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tool events (-want +got):\n%s", diff)
	}
	if r.Result.Turns < 3 {
		t.Errorf("%d turns, want at least 3", r.Result.Turns)
	}
}

func testMaxTurns(t *testing.T, h Harness) {
	box := NewBox(t)
	m := h.Model(t, Scenario{{Repeat: true, Turns: []Turn{{Bash: []string{"echo again >> log"}}}}})
	spec := box.Spec(m, "Never end.")
	spec.MaxTurns = 2
	r := Do(t, h, spec)
	need(t, r, agent.StatusMaxTurns)
	if n := len(m.Bodies()); n != 2 {
		t.Errorf("the model was asked %d times, want 2", n)
	}
}

func testStop(t *testing.T, h Harness) {
	for name, turn := range map[string]Turn{
		"while the model is asked": {Text: "never said", Wait: "gate"},
		"while a tool runs":        {Bash: []string{"touch running; sleep 60; touch finished"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			box := NewBox(t)
			m := h.Model(t, one(turn, Turn{Text: "end"}))
			p := Start(t, h, box.Spec(m, "Work."))
			atWork(t, box, m, turn)
			p.Interrupt()
			r := p.Wait()
			need(t, r, agent.StatusInterrupted)
			if box.Read("finished") != "" || strings.Contains(r.Result.Text, "end") {
				t.Error("the run went on after the stop")
			}
			if _, err := os.Stat(filepath.Join(box.Work, "finished")); err == nil {
				t.Error("the tool ran to its end")
			}
		})
	}
}

// atWork returns when the run has reached the point at which the turn holds it.
func atWork(t *testing.T, box Box, m Model, turn Turn) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	if turn.Wait != "" {
		if err := m.Waiting(ctx, turn.Wait); err != nil {
			t.Fatal(err)
		}
		return
	}
	WaitFor(t, "the tool to run", func() bool {
		_, err := os.Stat(filepath.Join(box.Work, "running"))
		return err == nil
	})
}

func testPromptIsText(t *testing.T, h Harness) {
	box := NewBox(t)
	box.Write(t, "secret.txt", "the-secret-word")
	m := h.Model(t, one(Turn{Text: "ok"}))
	r := Do(t, h, box.Spec(m, "/etc/hosts is wrong, see @secret.txt and\n@secret.txt and a@b.example "+
		"x@secret.txt .@secret.txt -@secret.txt _@secret.txt %@secret.txt +@secret.txt (@secret.txt) \"@secret.txt\" @\"secret.txt\" \u00a0@secret.txt"))
	need(t, r, agent.StatusOK)
	bodies := strings.Join(m.Bodies(), "\n")
	plain := strings.ReplaceAll(bodies, `\\@`, "@") // the prompt may contain escapes
	if !strings.Contains(plain, "/etc/hosts is wrong") || !strings.Contains(plain, "a@b.example") {
		t.Error("the model did not see the prompt")
	}
	if strings.Contains(bodies, "the-secret-word") {
		t.Error("a file that the prompt mentions was sent to the model")
	}
}

func testLongLines(t *testing.T, h Harness) {
	box := NewBox(t)
	box.Write(t, "big.txt", strings.Repeat("all work and no play\n", 20_000)+"last\n")
	path := filepath.Join(box.Work, "big.txt")
	var long strings.Builder // varied text, because some agents treat repeated words as a malfunction of the model
	for n := long.Len(); long.Len() < 200_000; n++ {
		fmt.Fprintf(&long, "%d is %x, ", n, n*n)
	}
	m := h.Model(t, one(
		Turn{Calls: []Call{{"Read", map[string]any{"file_path": path, "limit": 1}}}},
		Turn{Calls: []Call{{"Edit", map[string]any{"file_path": path, "old_string": "last", "new_string": "first"}}}},
		Turn{Text: long.String()},
	))
	r := Do(t, h, box.Spec(m, "Edit it."))
	need(t, r, agent.StatusOK)
	longest := 0
	for _, l := range r.Lines {
		longest = max(longest, len(l))
	}
	if longest < 200_000 && !h.Pieces {
		t.Errorf("the longest line has %d bytes: this proves nothing", longest)
	}
	if len(r.Result.Text) < 199_000 || !strings.HasPrefix(r.Result.Text, "0 is 0, ") || !strings.HasSuffix(box.Read("big.txt"), "first\n") {
		t.Errorf("text of %d bytes", len(r.Result.Text))
	}
}

func testFailures(t *testing.T, h Harness) {
	for name, tc := range map[string]struct {
		status  int
		message string
		want    agent.Status
	}{
		"unauthorised":     {401, "invalid x-api-key", agent.StatusAuth},
		"forbidden":        {403, "not allowed", agent.StatusAuth},
		"limited":          {429, "Number of requests has exceeded your limit", agent.StatusRateLimited},
		"overloaded":       {529, "Overloaded", agent.StatusOverloaded},
		"broken":           {500, "Internal server error", agent.StatusOverloaded},
		"too long":         {400, "prompt is too long: 250000 tokens > 200000 maximum", agent.StatusContextOverflow},
		"invalid request":  {400, "max_tokens: too large", agent.StatusInvalid},
		"request too big":  {413, "Request too large", agent.StatusContextOverflow},
		"no such model":    {404, "model: no-such-model", agent.StatusInvalid},
		"credit exhausted": {402, "Your credit balance is too low", agent.StatusBilling},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := h.Model(t, one(Turn{Status: tc.status, Message: tc.message}))
			r := Do(t, h, NewBox(t).Spec(m, "Work."))
			need(t, r, tc.want)
			if r.Result.HTTP != tc.status && !h.Words || r.Result.Reason+r.Result.Said == "" {
				t.Errorf("HTTP %d, message %q", r.Result.HTTP, r.Result.Reason+r.Result.Said)
			}
		})
	}
	t.Run("unreachable", func(t *testing.T) {
		t.Parallel()
		spec := NewBox(t).Spec(Model{Name: "m", URL: "http://127.0.0.1:1", Token: "x"}, "Work.")
		need(t, Do(t, h, spec), agent.StatusNetwork)
	})
}

// testUnknownLines passes a run's own lines, with damaged ones in between, to a fresh parser.
func testUnknownLines(t *testing.T, h Harness) {
	m := h.Model(t, one(Turn{Text: "a", Bash: []string{"echo b"}}, Turn{Text: "c"}))
	r := Do(t, h, NewBox(t).Spec(m, "Work."))
	need(t, r, agent.StatusOK)
	p := h.Adapter.NewParser()
	var events []runlog.Event
	for _, line := range r.Lines {
		for _, junk := range []string{"", "{", "null", "7", `"text"`, "[]", `{"type":"from_the_future","x":[1,2]}`, `{"type":7}`, string(line[:len(line)/2])} {
			if got := p.Line([]byte(junk)); h.Adapter.Name() != command.Name && len(got) != 0 {
				t.Errorf("%q made events: %+v", junk, got)
			}
		}
		events = append(events, p.Line(line)...)
	}
	if diff := cmp.Diff(r.Events, events); diff != "" {
		t.Errorf("junk between the lines changed the events (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(r.Result, p.Exit(r.Ended)); diff != "" {
		t.Errorf("junk between the lines changed the result (-want +got):\n%s", diff)
	}
}

func testUsage(t *testing.T, h Harness) {
	m := h.Model(t, one(Turn{Text: "a", Bash: []string{"seq 100"}}, Turn{Bash: []string{"true"}}, Turn{Text: "c"}))
	r := Do(t, h, NewBox(t).Spec(m, "Work."))
	need(t, r, agent.StatusOK)
	if diff := cmp.Diff(m.Usage(), r.Result.Usage); diff != "" {
		t.Errorf("usage (-model +agent):\n%s", diff)
	}
	if r.Result.Usage.Output == 0 || h.Cost != (r.Result.CostUSD > 0) {
		t.Errorf("usage %+v, cost %g", r.Result.Usage, r.Result.CostUSD)
	}
}

// testUsageOfResumed compares the reported usage of a second run with the model's count.
func testUsageOfResumed(t *testing.T, h Harness) {
	box := NewBox(t)
	m := h.Model(t, twoPrompts())
	first := Do(t, h, box.Spec(m, "first prompt"))
	need(t, first, agent.StatusOK)
	before := m.Usage()
	spec := box.Spec(m, "second prompt")
	spec.Resume = first.Result.Session
	p := start(t, h, spec, first.Result.Usage)
	second := p.Wait()
	need(t, second, agent.StatusOK)
	after := m.Usage()
	want := runlog.Usage{
		Input: after.Input - before.Input, Output: after.Output - before.Output,
		CacheRead: after.CacheRead - before.CacheRead, CacheWrite: after.CacheWrite - before.CacheWrite,
	}
	if diff := cmp.Diff(want, second.Result.Usage); diff != "" {
		t.Errorf("usage (-model +agent):\n%s", diff)
	}
}

func testSchema(t *testing.T, h Harness) {
	m := h.Model(t, one(Turn{Calls: []Call{{"StructuredOutput", map[string]any{"verdict": "advance"}}}}, Turn{Text: "done"}))
	spec := NewBox(t).Spec(m, "Judge.")
	spec.Schema = json.RawMessage(`{"type":"object","properties":{"verdict":{"type":"string"}},"required":["verdict"]}`)
	r := Do(t, h, spec)
	need(t, r, agent.StatusOK)
	var got struct{ Verdict string }
	if err := json.Unmarshal(r.Result.Structured, &got); err != nil || got.Verdict != "advance" {
		t.Errorf("structured %s: %v", r.Result.Structured, err)
	}
}

func testSchemaMissed(t *testing.T, h Harness) {
	m := h.Model(t, Scenario{{Repeat: true, Turns: []Turn{{Text: "I would rather not."}}}})
	spec := NewBox(t).Spec(m, "Judge.")
	spec.Schema = json.RawMessage(`{"type":"object","properties":{"verdict":{"type":"string"}},"required":["verdict"]}`)
	need(t, Do(t, h, spec), agent.StatusNoStructuredOutput)
}
