package agentloop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Limits of MCP servers.
const (
	connectTimeout = 30 * time.Second
	serverTimeout  = 15 * time.Minute // of a call: the tether may hold it while errand is not attached
	serverOutput   = 64 << 10
	maxServerTools = 100
)

// servers are the MCP servers of a run, each a process that communicates over standard input and output.
type servers struct {
	sessions []*mcp.ClientSession
	ends     []context.CancelFunc // of the processes
	tools    []serverTool
}

// serverTool is a tool of a server, with the name that the model uses.
type serverTool struct {
	name   string // mcp__SERVER__TOOL
	remote string
	of     *mcp.ClientSession
	tool   *mcp.Tool
}

// startServers starts the servers in an MCP configuration ({"mcpServers": …}). A server that fails to start ends the
// run before it costs anything, because the agent depends on its tools.
func startServers(ctx context.Context, config json.RawMessage, dir string, env []string) (*servers, error) {
	s := &servers{}
	if len(config) == 0 {
		return s, nil
	}
	var named struct {
		Servers map[string]struct {
			Command string            `json:"command"`
			Args    []string          `json:"args"`
			Env     map[string]string `json:"env"`
		} `json:"mcpServers"`
	}
	if err := json.Unmarshal(config, &named); err != nil {
		return nil, fmt.Errorf("read the MCP configuration: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(named.Servers)) {
		one := named.Servers[name]
		life, end := context.WithCancel(context.WithoutCancel(ctx))
		s.ends = append(s.ends, end)
		cmd := exec.CommandContext(life, one.Command, one.Args...)
		cmd.Dir, cmd.Env = dir, slices.Clone(env)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // only the loop handles interrupts, and ends the process
		for _, key := range slices.Sorted(maps.Keys(one.Env)) {
			cmd.Env = append(cmd.Env, key+"="+one.Env[key])
		}
		// A server that starts too slowly, or whose run is canceled, is killed.
		timer, stop := time.AfterFunc(connectTimeout, end), context.AfterFunc(ctx, end)
		err := s.connect(life, name, cmd)
		timer.Stop()
		stop()
		if err != nil {
			s.close()
			return nil, fmt.Errorf("start the MCP server %s: %w", name, err)
		}
	}
	return s, nil
}

func (s *servers) connect(ctx context.Context, name string, cmd *exec.Cmd) error {
	client := mcp.NewClient(&mcp.Implementation{Name: "errand-agent", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.CommandTransport{Command: cmd, TerminateDuration: time.Second}, nil)
	if err != nil {
		return err
	}
	s.sessions = append(s.sessions, session)
	for t, err := range session.Tools(ctx, nil) {
		if err != nil {
			return err
		}
		if len(s.tools) == maxServerTools {
			return errors.New("there are too many tools")
		}
		s.tools = append(s.tools, serverTool{name: "mcp__" + name + "__" + t.Name, remote: t.Name, of: session, tool: t})
	}
	return nil
}

// close ends the servers.
func (s *servers) close() {
	for _, one := range s.sessions {
		_ = one.Close() // the process is killed if it does not exit
	}
	for _, end := range s.ends {
		end()
	}
}

// find returns the tool with the name, or nil.
func (s *servers) find(name string) *serverTool {
	for i := range s.tools {
		if s.tools[i].name == name {
			return &s.tools[i]
		}
	}
	return nil
}

// run calls a tool.
func (t *serverTool) run(ctx context.Context, input json.RawMessage) toolResult {
	timed, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	got, err := t.of.CallTool(timed, &mcp.CallToolParams{Name: t.remote, Arguments: input})
	switch {
	case ctx.Err() != nil:
		return toolResult{text: interrupted, failed: true}
	case err != nil:
		return refusedResult("The tool failed: %v", err)
	}
	out := &headTailBuffer{limit: serverOutput}
	for i, c := range got.Content {
		if i > 0 {
			_, _ = out.Write([]byte("\n")) // never fails
		}
		if text, ok := c.(*mcp.TextContent); ok {
			_, _ = out.Write([]byte(text.Text))
		} else {
			_, _ = out.Write([]byte("[content that is not text is omitted]"))
		}
	}
	return toolResult{text: out.String(), failed: got.IsError}
}

// describe describes the tool to the model.
func (t *serverTool) describe() anthropic.ToolUnionParam {
	schema := map[string]any{}
	if raw, err := json.Marshal(t.tool.InputSchema); err == nil {
		_ = json.Unmarshal(raw, &schema) // otherwise any input is allowed
	}
	return anthropic.ToolUnionParam{OfTool: &anthropic.ToolParam{
		Name: t.name, Description: param.NewOpt(strings.TrimSpace(t.tool.Description)), InputSchema: inputSchema(schema),
	}}
}
