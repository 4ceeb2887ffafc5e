package codex_test

import (
	"testing"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/agent/agenttest"
	"github.com/errand-bot/errand/internal/agent/codex"
)

// format is the output format of Codex.
func format() agenttest.Format {
	return agenttest.Format{
		Begin: `{"type":"thread.started","thread_id":"s1"}`,
		Text: func(s string) string {
			return `{"type":"item.completed","item":{"id":"1","type":"agent_message","text":"` + s + `"}}`
		},
		ToolUse:       `{"type":"item.started","item":{"id":"2","type":"command_execution","command":"ls"}}`,
		ToolResult:    `{"type":"item.completed","item":{"id":"2","type":"command_execution","aggregated_output":"a b","exit_code":0}}`,
		End:           `{"type":"turn.completed","usage":{"input_tokens":30,"output_tokens":4}}`,
		WholeMessages: true,
	}
}

func TestParser(t *testing.T) {
	t.Parallel()
	agenttest.RunParser(t, codex.New(agent.Program{}), format())
}

// TestToolsOfOtherKinds: updating a plan counts as work; closing it at the end does not.
func TestToolsOfOtherKinds(t *testing.T) {
	t.Parallel()
	f := format()
	item := func(event, kind string) string {
		return `{"type":"item.` + event + `","item":{"id":"9","type":"` + kind + `"}}`
	}
	for name, tc := range map[string]struct {
		lines []string
		want  agent.Status
	}{
		"a plan made before":  {[]string{item("started", "todo_list"), f.Text("Done."), item("completed", "todo_list"), f.End}, agent.StatusOK},
		"a plan made after":   {[]string{f.Text("I begin."), item("started", "todo_list"), f.End}, agent.StatusRefused},
		"a plan updated":      {[]string{f.Text("I begin."), item("updated", "todo_list"), f.End}, agent.StatusRefused},
		"a tool of to-morrow": {[]string{f.Text("I begin."), item("started", "from_the_future"), item("completed", "from_the_future"), f.End}, agent.StatusRefused},
		"changes at once":     {[]string{f.Text("I begin."), item("completed", "file_change"), f.End}, agent.StatusRefused},
		"thoughts":            {[]string{f.Text("Done."), item("completed", "reasoning"), item("completed", "error"), f.End}, agent.StatusOK},
		"output comes late":   {[]string{f.ToolUse, f.Text("Done."), f.ToolResult, f.End}, agent.StatusOK},
	} {
		if got, _ := agenttest.ReadTruncated(codex.New(agent.Program{Command: []string{"x"}}), 600, append([]string{f.Begin}, tc.lines...)); got.Status != tc.want {
			t.Errorf("%s: %s %q with %q", name, got.Status, got.Reason+got.Said, got.Text)
		}
	}
}
