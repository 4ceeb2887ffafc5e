package gemini_test

import (
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/agent/agenttest"
	"github.com/errand-bot/errand/internal/agent/gemini"
)

// format is the output format of Gemini CLI.
func format() agenttest.Format {
	return agenttest.Format{Begin: lineInit, Text: textLine, ToolUse: lineTool, ToolResult: strings.Replace(lineOutput, `out\nerr`, "a b", 1), End: lineDone}
}

func TestParser(t *testing.T) {
	t.Parallel()
	agenttest.RunParser(t, gemini.New(agent.Program{}), format())
}

// TestLongAnswerInChunks: an answer that is too long is refused although none of its lines is.
func TestLongAnswerInChunks(t *testing.T) {
	t.Parallel()
	f := format()
	lines := []string{f.Begin}
	for range 50 {
		lines = append(lines, f.Text(strings.Repeat("x", 100_000)))
	}
	got, _ := agenttest.ReadTruncated(gemini.New(agent.Program{}), 4<<20, append(lines, f.End))
	if got.Status != agent.StatusAnswerCut {
		t.Errorf("5 MB in chunks: status %s with %d bytes", got.Status, len(got.Text))
	}
}
