package agentloop_test

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/errand-bot/errand/internal/agentloop/wire"
	"github.com/errand-bot/errand/internal/sim/simmodel"
)

// TestMain lets the test binary be an MCP server.
func TestMain(m *testing.M) {
	if os.Getenv("ERRAND_TEST_MCP") != "" {
		type in struct {
			Word string `json:"word" jsonschema:"what to say"`
		}
		s := mcp.NewServer(&mcp.Implementation{Name: "echo", Version: "1"}, nil)
		mcp.AddTool(s, &mcp.Tool{Name: "say", Description: "Says a word."}, func(_ context.Context, _ *mcp.CallToolRequest, in in) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{IsError: in.Word == "bad", Content: []mcp.Content{&mcp.TextContent{Text: "said " + in.Word}}}, nil, nil
		})
		if s.Run(context.Background(), &mcp.StdioTransport{}) != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func echoServer(t *testing.T, env map[string]string) json.RawMessage {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"echo": map[string]any{"command": os.Args[0], "args": []string{"-test.run=^$"}, "env": env}}})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestServers: the tools of an MCP server are offered with their schemas, and called.
func TestServers(t *testing.T) {
	t.Parallel()
	say := func(word string) simmodel.Call {
		return simmodel.Call{Name: "mcp__echo__say", Input: map[string]any{"word": word}}
	}
	w := newWorld(t, simmodel.Turn{Tools: []simmodel.Call{say("hello"), say("bad"), {Name: "mcp__echo__none", Input: map[string]any{}}}}, simmodel.Turn{Text: "end"})
	set := w.settings()
	set.MCP = echoServer(t, map[string]string{"ERRAND_TEST_MCP": "1"})
	lines, r := w.run(t.Context(), set, "work")
	w.need(r, wire.CauseOK)
	var got []string
	for _, l := range lines {
		if l.Type == wire.TypeToolResult {
			got = append(got, l.Text)
		}
	}
	if text := strings.Join(got, "; "); text != `said hello; said bad; There is no tool "mcp__echo__none" here.` {
		t.Errorf("results: %s", text)
	}
	if body := w.lastBody(); !strings.Contains(body, `"what to say"`) {
		t.Error("the tool's schema was not sent to the model")
	}
}

// TestServerMissing: a run whose server does not start makes no model call.
func TestServerMissing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, simmodel.Turn{Text: "never"})
	for name, config := range map[string]json.RawMessage{
		"no such program": json.RawMessage(`{"mcpServers":{"x":{"command":"/nonexistent"}}}`),
		"no server":       echoServer(t, nil),
		"no object":       json.RawMessage(`[]`),
	} {
		set := w.settings()
		set.MCP = config
		_, r := w.run(t.Context(), set, "work")
		if r.Cause != wire.CauseInvalid || len(w.sim.Requests()) != 0 {
			t.Errorf("%s: %+v after %d requests", name, r, len(w.sim.Requests()))
		}
	}
}
