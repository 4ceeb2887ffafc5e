package claude_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/agent/agenttest"
	"github.com/errand-bot/errand/internal/agent/claude"
	"github.com/errand-bot/errand/internal/heavytest"
)

// slowServer is an MCP server with one tool that takes its time until it answers for the first time.
const slowServer = `sleep 6

while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
  *'"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"slow","version":"1"}}' ;;
  *'"tools/list"'*) result='{"tools":[{"name":"ping","description":"Say pong.","inputSchema":{"type":"object","properties":{}}}]}' ;;
  *'"tools/call"'*) result='{"content":[{"type":"text","text":"pong"}]}' ;;
  *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
`

// TestHeavyToolsAreAvailableAtOnce: by default, the real program calls the model at once, without the tools of servers
// that have not started. On a busy machine errand's server takes longer than its timeout.
func TestHeavyToolsAreAvailableAtOnce(t *testing.T) {
	t.Parallel()
	heavytest.Mark(t)
	if _, err := exec.LookPath("claude"); err != nil {
		t.Skip("no claude in PATH: its wait for tools is not tested")
	}
	h := agenttest.Harness{Adapter: claude.New(agent.Program{Command: []string{"claude"}, Env: map[string]string{"CLAUDE_CODE_MAX_RETRIES": "0"}}), Model: agenttest.StartModel(claude.DefaultModel)}
	m := h.Model(t, agenttest.Scenario{{Turns: []agenttest.Turn{{Calls: []agenttest.Call{{Name: "mcp__slow__ping", Input: map[string]any{}}}}, {Text: "done"}}}})
	box := agenttest.NewBox(t)
	script := filepath.Join(box.Run, "slow.sh")
	if err := os.WriteFile(script, []byte(slowServer), 0o600); err != nil {
		t.Fatal(err)
	}
	spec := box.Spec(m, "Work.")
	var err error
	spec.MCP, err = json.Marshal(map[string]any{"mcpServers": map[string]any{"slow": map[string]any{"command": "sh", "args": []string{script}}}})
	if err != nil {
		t.Fatal(err)
	}
	r := agenttest.Do(t, h, spec)
	bodies := m.Bodies()
	if r.Result.Status != agent.StatusOK || len(bodies) != 2 {
		t.Fatalf("%d requests, result %+v", len(bodies), r.Result)
	}
	if !strings.Contains(bodies[0], `"name":"mcp__slow__ping"`) {
		t.Error("the first request does not offer the tool")
	}
	if !strings.Contains(bodies[1], "pong") {
		t.Error("the tool was not called")
	}
}
