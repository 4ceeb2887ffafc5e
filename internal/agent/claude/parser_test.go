package claude_test

import (
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/agent/agenttest"
	"github.com/errand-bot/errand/internal/agent/claude"
)

// format is the output format of Claude Code.
func format() agenttest.Format {
	return agenttest.Format{
		Begin: `{"type":"system","subtype":"init","session_id":"s1"}`,
		Text: func(s string) string {
			return `{"type":"assistant","message":{"content":[{"type":"text","text":"` + s + `"}]}}`
		},
		ToolUse:    `{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t","name":"Bash","input":{"command":"ls"}}]}}`,
		ToolResult: `{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"a b"}]}}`,
		Final: func(s string) string {
			return `{"type":"result","subtype":"success","is_error":false,"num_turns":2,"result":"` + s + `","session_id":"s1"}`
		},
	}
}

func TestParser(t *testing.T) {
	t.Parallel()
	agenttest.RunParser(t, claude.New(agent.Program{}), format())
}

// TestWorkAfterTheAnswer: an answer that is followed by more work does not count.
func TestWorkAfterTheAnswer(t *testing.T) {
	t.Parallel()
	f := format()
	lines := append([]string{f.Begin}, f.Answer("Done.")...)
	for name, tc := range map[string]struct {
		more []string
		want agent.Status
	}{
		"nothing":              {nil, agent.StatusOK},
		"work":                 {[]string{f.ToolUse, f.ToolResult}, agent.StatusCrashed},
		"work and an answer":   {append([]string{f.ToolUse, f.ToolResult}, f.Answer("Done.")...), agent.StatusOK},
		"work and a cut line":  {[]string{f.ToolUse, f.ToolResult, f.Final(strings.Repeat("x", 1000))}, agent.StatusAnswerCut},
		"a line that is noise": {[]string{"words"}, agent.StatusOK},
	} {
		if got, _ := agenttest.ReadTruncated(claude.New(agent.Program{Command: []string{"x"}}), 600, append(lines[:len(lines):len(lines)], tc.more...)); got.Status != tc.want {
			t.Errorf("%s: %s %q", name, got.Status, got.Reason+got.Said)
		}
	}
}

// TestResultTruncatedAfterTheAnswer: the list of denials is not required.
func TestResultTruncatedAfterTheAnswer(t *testing.T) {
	t.Parallel()
	line := `{"type":"result","subtype":"success","is_error":false,"num_turns":2,"result":"Done.","session_id":"s1","modelUsage":{"m":{"inputTokens":7}},` +
		`"permission_denials":[{"tool_name":"Bash","tool_input":{"command":"` + strings.Repeat("x", 1000) + `"}}]}`
	got, _ := agenttest.ReadTruncated(claude.New(agent.Program{Command: []string{"x"}}), 600, []string{line})
	if got.Status != agent.StatusOK || got.Text != "Done." || got.Session != "s1" || got.Usage.Input != 7 {
		t.Errorf("result %+v", got)
	}
}
