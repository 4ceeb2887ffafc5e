package agenttest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/runlog"
)

// Format is the output format of an adapter's program. An empty field means that the program has no such output.
type Format struct {
	// Begin, ToolUse, ToolResult and End are single lines.
	Begin, ToolUse, ToolResult, End string
	// Text returns the lines of a message of the model.
	Text func(text string) string
	// Final returns the last line, if it contains the answer itself.
	Final func(text string) string
	// WholeMessages: each message is on one line, so that a message after dropped output is complete.
	WholeMessages bool
}

// Answer returns the last lines of a run with this answer.
func (f Format) Answer(text string) []string {
	lines := strings.Split(f.Text(text), "\n")
	if f.Final != nil {
		return append(lines, f.Final(text))
	}
	return append(lines, f.End)
}

// work returns the first lines of a run: the model's text, and a tool call.
func (f Format) work(text string) []string {
	lines := append([]string{f.Begin}, strings.Split(f.Text(text), "\n")...)
	return append(lines, f.ToolUse, f.ToolResult)
}

// RunParser tests an adapter's parser with truncated and dropped lines. The subtests are parallel.
func RunParser(t *testing.T, a agent.Adapter, f Format) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, agent.Adapter, Format){
		"text before a tool call is not the answer": testTextBeforeTools,
		"empty answer":                       testEmptyAnswer,
		"truncated anywhere":                 testTruncatedAnywhere,
		"missing output leaves no answer":    testMissingOutput,
		"an answer of 3 MB is kept complete": testLongAnswer,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, a, f)
		})
	}
}

// ReadTruncated passes lines to an adapter's parser, each truncated to a maximum length.
func ReadTruncated(a agent.Adapter, most int, lines []string) (agent.Result, []runlog.Event) {
	r := NewReader(a, agent.Spec{})
	var events []runlog.Event
	for i, text := range lines {
		l := runlog.Line{Seq: int64(i + 1), Stream: runlog.StreamStdout, Text: text[:min(most, len(text))]}
		l.Cut = len(text) - len(l.Text)
		events = append(events, r.Line(l)...)
	}
	return r.Exit(runlog.Exit{Cause: runlog.CauseExited}, false), events
}

func testTextBeforeTools(t *testing.T, a agent.Adapter, f Format) {
	const most = 400
	long := strings.Repeat("long ", most)
	for name, tc := range map[string]struct {
		lines []string
		want  agent.Status
		says  string
		text  string
	}{
		"complete answer":         {append(f.work("I look around."), f.Answer("Done.")...), agent.StatusOK, "", "Done."},
		"truncated answer":        {append(f.work("I look around."), f.Answer(long)...), agent.StatusAnswerCut, "longer than the 4 MiB", ""},
		"truncated text first":    {append(f.work(long), f.Answer("Done.")...), agent.StatusOK, "", "Done."},
		"truncated tool's result": {append([]string{f.Begin, f.ToolUse, strings.Replace(f.ToolResult, "a b", long, 1)}, f.Answer("Done.")...), agent.StatusOK, "", "Done."},
	} {
		got, events := ReadTruncated(a, most, tc.lines)
		if got.Status != tc.want || !strings.Contains(got.Reason+got.Said, tc.says) || got.Status == agent.StatusOK && got.Text != tc.text {
			t.Errorf("%s: %s %q with %.80q, want %s %q with %q", name, got.Status, got.Reason+got.Said, got.Text, tc.want, tc.says, tc.text)
		}
		if shown := fmt.Sprint(events); strings.Contains(fmt.Sprint(tc.lines), long) != strings.Contains(shown, "a line was too long") {
			t.Errorf("%s: the events are %.600s", name, shown)
		}
	}
}

func testEmptyAnswer(t *testing.T, a agent.Adapter, f Format) {
	last := f.End
	if f.Final != nil {
		last = f.Final("")
	}
	got, _ := ReadTruncated(a, 400, append(f.work("I look around."), last))
	if got.Text != "" || got.Status != agent.StatusOK && got.Status != agent.StatusRefused {
		t.Errorf("status %s with text %q", got.Status, got.Text)
	}
}

// testTruncatedAnywhere: wherever the last lines are truncated, the result is the complete answer, or none with a
// reason.
func testTruncatedAnywhere(t *testing.T, a agent.Adapter, f Format) {
	lines := append(f.work("I look around."), f.Answer("All of it: "+strings.Repeat("ä", 300))...)
	for most := 1; most < 800; most += 7 {
		got, _ := ReadTruncated(a, most, lines)
		whole := strings.HasPrefix(got.Text, "All of it: ") && strings.HasSuffix(got.Text, strings.Repeat("ä", 300))
		if got.Status == agent.StatusOK && !whole || got.Status == agent.StatusAnswerCut && got.Reason == "" {
			t.Errorf("at %d: %s %q with %.60q", most, got.Status, got.Reason+got.Said, got.Text)
		}
	}
}

func testLongAnswer(t *testing.T, a agent.Adapter, f Format) {
	long := strings.Repeat("0123456789", 300_000) + "the end"
	got, _ := ReadTruncated(a, 4<<20, append([]string{f.Begin}, f.Answer(long)...))
	if got.Status != agent.StatusOK || got.Text != long {
		t.Errorf("status %s %q with %d bytes", got.Status, got.Reason+got.Said, len(got.Text))
	}
}

// testMissingOutput: text before dropped lines is not the answer, nor is an answer with missing chunks. A complete
// answer after them is.
func testMissingOutput(t *testing.T, a agent.Adapter, f Format) {
	gap := runlog.Line{Stream: runlog.StreamRunner, Text: "9 lines were left out here.", Cut: 99}
	answer := f.Answer("Done.")
	end, chunk := agent.StatusAnswerCut, agent.StatusAnswerCut
	if f.Final != nil { // the last line contains the whole answer
		end, chunk = agent.StatusOK, agent.StatusOK
	} else if f.WholeMessages {
		chunk = agent.StatusOK
	}
	begin := append([]string{f.Begin}, strings.Split(f.Text("I look around."), "\n")...)
	for name, tc := range map[string]struct {
		before, after []string
		want          agent.Status
	}{
		"everything after it":   {begin, nil, agent.StatusAnswerCut},
		"all but the last line": {begin, answer[len(answer)-1:], end},
		"text before an answer": {begin, answer, chunk},
		"before a tool call":    {begin, append([]string{f.ToolUse, f.ToolResult}, answer...), agent.StatusOK},
	} {
		r := NewReader(a, agent.Spec{})
		for _, text := range tc.before {
			r.Line(runlog.Line{Stream: runlog.StreamStdout, Text: text})
		}
		r.Line(gap)
		for _, text := range tc.after {
			r.Line(runlog.Line{Stream: runlog.StreamStdout, Text: text})
		}
		if res := r.Exit(runlog.Exit{Cause: runlog.CauseExited}, false); res.Status != tc.want {
			t.Errorf("%s: status %s %q with %q, want %s", name, res.Status, res.Reason+res.Said, res.Text, tc.want)
		}
	}
}

// Ending is a way in which a run may end, and its judgment.
type Ending struct {
	Lines []string
	Ended agent.Ended
	Want  agent.Status
	Says  string // contained in the reason or in the program's own words
}

// CheckEndings tests an adapter's judgments. The subtests are parallel.
func CheckEndings(t *testing.T, a agent.Adapter, endings map[string]Ending) {
	t.Helper()
	for name, tc := range endings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := a.NewParser()
			for _, l := range tc.Lines {
				p.Line([]byte(l))
			}
			got := p.Exit(tc.Ended)
			if got.Status != tc.Want || !strings.Contains(got.Reason+got.Said, tc.Says) {
				t.Errorf("status %q with %q, want %q with %q", got.Status, got.Reason+got.Said, tc.Want, tc.Says)
			}
			if got.Status == agent.StatusNoSession && got.Session != "" {
				t.Errorf("session %q although there is none", got.Session)
			}
		})
	}
}
