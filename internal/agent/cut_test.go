package agent_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/agent/agenttest"
	"github.com/errand-bot/errand/internal/agentloop/wire"
	"github.com/errand-bot/errand/internal/runlog"
)

// dialect is the output format of one adapter's program. An empty field means that the program has no such output.
type dialect struct {
	begin, tool, output, end string
	say                      func(text string) string // a message of the model
	final                    func(text string) string // the last line where it has the answer itself
}

func dialects() map[string]dialect {
	loop := func(t wire.Type, more string) string { return `{"type":"` + string(t) + `"` + more + `}` }
	return map[string]dialect{
		agent.NameClaude: {
			begin: `{"type":"system","subtype":"init","session_id":"s1"}`,
			say: func(s string) string {
				return `{"type":"assistant","message":{"content":[{"type":"text","text":"` + s + `"}]}}`
			},
			tool:   `{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t","name":"Bash","input":{"command":"ls"}}]}}`,
			output: `{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"a b"}]}}`,
			final: func(s string) string {
				return `{"type":"result","subtype":"success","is_error":false,"num_turns":2,"result":"` + s + `","session_id":"s1"}`
			},
		},
		agent.NameCodex: {
			begin: `{"type":"thread.started","thread_id":"s1"}`,
			say: func(s string) string {
				return `{"type":"item.completed","item":{"id":"1","type":"agent_message","text":"` + s + `"}}`
			},
			tool:   `{"type":"item.started","item":{"id":"2","type":"command_execution","command":"ls"}}`,
			output: `{"type":"item.completed","item":{"id":"2","type":"command_execution","aggregated_output":"a b","exit_code":0}}`,
			end:    `{"type":"turn.completed","usage":{"input_tokens":30,"output_tokens":4}}`,
		},
		agent.NameGemini: {
			begin: geminiInit, say: geminiSays, tool: geminiTool, output: geminiOutput, end: geminiDone,
		},
		agent.NameAPI: {
			begin: loop(wire.TypeStarted, `,"session":"s1"`),
			say: func(s string) string {
				return loop(wire.TypeText, `,"text":"`+s+`"`) + "\n" + loop(wire.TypeUsage, `,"usage":{"input":1}`)
			},
			tool: loop(wire.TypeToolUse, `,"id":"t","name":"Bash"`), output: loop(wire.TypeToolResult, `,"id":"t","text":"a b"`),
			final: func(s string) string {
				return loop(wire.TypeResult, `,"result":{"cause":"ok","text":"`+s+`","session":"s1","turns":2}`)
			},
		},
	}
}

// answer is the end of a run whose last answer is this.
func (d dialect) answer(text string) []string {
	lines := strings.Split(d.say(text), "\n")
	if d.final != nil {
		return append(lines, d.final(text))
	}
	return append(lines, d.end)
}

// read gives lines to an adapter's parser, of those that are longer than most only the beginning.
func readCut(t *testing.T, adapter string, most int, lines []string) (agent.Result, []runlog.Event) {
	t.Helper()
	r := agenttest.NewReader(newAdapter(t, agent.Config{Adapter: adapter, Command: []string{"x"}}), agent.Spec{})
	var events []runlog.Event
	for i, text := range lines {
		l := runlog.Line{Seq: int64(i + 1), Stream: runlog.StreamStdout, Text: text[:min(most, len(text))]}
		l.Cut = len(text) - len(l.Text)
		events = append(events, r.Line(l)...)
	}
	return r.Exit(runlog.Exit{Cause: runlog.CauseExited}, false), events
}

// TestTextBeforeToolsIsNoAnswer: text before a tool call is never the result, even if the last answer is empty or
// truncated.
func TestTextBeforeToolsIsNoAnswer(t *testing.T) {
	t.Parallel()
	const most = 400
	long := strings.Repeat("long ", most)
	for name, d := range dialects() {
		before := []string{d.begin}
		before = append(append(before, strings.Split(d.say("I look around."), "\n")...), d.tool, d.output)
		for what, tc := range map[string]struct {
			lines []string
			want  agent.Status
			says  string
			text  string
		}{
			"a whole answer": {append(before[:len(before):len(before)], d.answer("Done.")...), agent.StatusOK, "", "Done."},
			"a cut answer":   {append(before[:len(before):len(before)], d.answer(long)...), agent.StatusAnswerCut, "longer than the 4 MiB", ""},
			"a cut one first": {append(append(append([]string{d.begin}, strings.Split(d.say(long), "\n")...), d.tool, d.output), d.answer("Done.")...),
				agent.StatusOK, "", "Done."},
			"a cut tool": {append([]string{d.begin, d.tool, strings.Replace(d.output, "a b", long, 1)}, d.answer("Done.")...), agent.StatusOK, "", "Done."},
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				t.Parallel()
				got, events := readCut(t, name, most, tc.lines)
				if got.Status != tc.want || !strings.Contains(got.Why+got.Said, tc.says) || got.Status == agent.StatusOK && got.Text != tc.text {
					t.Errorf("%s %q with %.80q, want %s %q with %q", got.Status, got.Why+got.Said, got.Text, tc.want, tc.says, tc.text)
				}
				if told := fmt.Sprint(events); strings.Contains(fmt.Sprint(tc.lines), long) != strings.Contains(told, "a line was too long") {
					t.Errorf("the events are %.600s", told)
				}
			})
		}
		t.Run(name+", an empty answer", func(t *testing.T) {
			t.Parallel()
			lines := append(before[:len(before):len(before)], d.end)
			if d.final != nil {
				lines[len(lines)-1] = d.final("")
			}
			if got, _ := readCut(t, name, most, lines); got.Text != "" || got.Status != agent.StatusOK && got.Status != agent.StatusRefused {
				t.Errorf("%s with %q", got.Status, got.Text)
			}
		})
	}
}

// TestCutAnywhere: wherever the last lines are truncated, the result is the complete answer, or none with a reason.
func TestCutAnywhere(t *testing.T) {
	t.Parallel()
	for name, d := range dialects() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lines := append([]string{d.begin}, strings.Split(d.say("I look around."), "\n")...)
			lines = append(append(lines, d.tool, d.output), d.answer("All of it: "+strings.Repeat("ä", 300))...)
			for most := 1; most < 800; most += 7 {
				got, _ := readCut(t, name, most, lines)
				whole := strings.HasPrefix(got.Text, "All of it: ") && strings.HasSuffix(got.Text, strings.Repeat("ä", 300))
				if got.Status == agent.StatusOK && !whole || got.Status == agent.StatusAnswerCut && got.Why == "" {
					t.Errorf("at %d: %s %q with %.60q", most, got.Status, got.Why+got.Said, got.Text)
				}
			}
		})
	}
}

// TestClaudeGoesOnAfterItsAnswer: an answer that is followed by more work does not count.
func TestClaudeGoesOnAfterItsAnswer(t *testing.T) {
	t.Parallel()
	d := dialects()[agent.NameClaude]
	lines := append([]string{d.begin}, d.answer("Done.")...)
	for name, tc := range map[string]struct {
		more []string
		want agent.Status
	}{
		"nothing":              {nil, agent.StatusOK},
		"work":                 {[]string{d.tool, d.output}, agent.StatusCrashed},
		"work and an answer":   {append([]string{d.tool, d.output}, d.answer("Done.")...), agent.StatusOK},
		"work and a cut line":  {[]string{d.tool, d.output, d.final(strings.Repeat("x", 1000))}, agent.StatusAnswerCut},
		"a line that is noise": {[]string{"words"}, agent.StatusOK},
	} {
		if got, _ := readCut(t, agent.NameClaude, 600, append(lines[:len(lines):len(lines)], tc.more...)); got.Status != tc.want {
			t.Errorf("%s: %s %q", name, got.Status, got.Why+got.Said)
		}
	}
}

// TestClaudeResultCutAfterItsAnswer: the list of denials is not required.
func TestClaudeResultCutAfterItsAnswer(t *testing.T) {
	t.Parallel()
	line := `{"type":"result","subtype":"success","is_error":false,"num_turns":2,"result":"Done.","session_id":"s1","modelUsage":{"m":{"inputTokens":7}},` +
		`"permission_denials":[{"tool_name":"Bash","tool_input":{"command":"` + strings.Repeat("x", 1000) + `"}}]}`
	got, _ := readCut(t, agent.NameClaude, 600, []string{line})
	if got.Status != agent.StatusOK || got.Text != "Done." || got.Session != "s1" || got.Usage.Input != 7 {
		t.Errorf("result %+v", got)
	}
}

// TestCodexToolsOfOtherKinds: updating a plan counts as work; closing it at the end does not.
func TestCodexToolsOfOtherKinds(t *testing.T) {
	t.Parallel()
	d := dialects()[agent.NameCodex]
	item := func(event, kind string) string {
		return `{"type":"item.` + event + `","item":{"id":"9","type":"` + kind + `"}}`
	}
	for name, tc := range map[string]struct {
		lines []string
		want  agent.Status
	}{
		"a plan made before":  {[]string{item("started", "todo_list"), d.say("Done."), item("completed", "todo_list"), d.end}, agent.StatusOK},
		"a plan made after":   {[]string{d.say("I begin."), item("started", "todo_list"), d.end}, agent.StatusRefused},
		"a plan updated":      {[]string{d.say("I begin."), item("updated", "todo_list"), d.end}, agent.StatusRefused},
		"a tool of to-morrow": {[]string{d.say("I begin."), item("started", "from_the_future"), item("completed", "from_the_future"), d.end}, agent.StatusRefused},
		"changes at once":     {[]string{d.say("I begin."), item("completed", "file_change"), d.end}, agent.StatusRefused},
		"thoughts":            {[]string{d.say("Done."), item("completed", "reasoning"), item("completed", "error"), d.end}, agent.StatusOK},
		"output comes late":   {[]string{d.tool, d.say("Done."), d.output, d.end}, agent.StatusOK},
	} {
		if got, _ := readCut(t, agent.NameCodex, 600, append([]string{d.begin}, tc.lines...)); got.Status != tc.want {
			t.Errorf("%s: %s %q with %q", name, got.Status, got.Why+got.Said, got.Text)
		}
	}
}

// TestCutOutputOfACommand: the text notes that a line is truncated; a truncated last line leaves no answer.
func TestCutOutputOfACommand(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100)
	got, _ := readCut(t, agent.NameCommand, 50, []string{long, "Done."})
	if want := long[:50] + "… (50 bytes of this line are missing)\nDone."; got.Status != agent.StatusOK || got.Text != want {
		t.Errorf("%s with %q", got.Status, got.Text)
	}
	if got, _ = readCut(t, agent.NameCommand, 50, []string{"Begin.", long, "", " "}); got.Status != agent.StatusAnswerCut || !strings.Contains(got.Why+got.Said, "4 MiB") {
		t.Errorf("%s %q", got.Status, got.Why+got.Said)
	}
}

// TestLongAnswersAreWhole: every adapter keeps the end of an answer of 3 MB, which contains the closing block.
func TestLongAnswersAreWhole(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("0123456789", 300_000) + "the end"
	for name, d := range dialects() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, _ := readCut(t, name, 4<<20, append([]string{d.begin}, d.answer(long)...))
			if got.Status != agent.StatusOK || got.Text != long {
				t.Errorf("%s %q with %d bytes", got.Status, got.Why+got.Said, len(got.Text))
			}
		})
	}
	d := dialects()[agent.NameGemini] // it comes in pieces, so that no line is too long
	pieces := []string{d.begin}
	for range 50 {
		pieces = append(pieces, d.say(strings.Repeat("x", 100_000)))
	}
	if got, _ := readCut(t, agent.NameGemini, 4<<20, append(pieces, d.end)); got.Status != agent.StatusAnswerCut {
		t.Errorf("5 MB in pieces: %s with %d bytes", got.Status, len(got.Text))
	}
}
