package simagent

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// mcpPrefix starts the names of MCP tools: mcp__SERVER__TOOL.
const mcpPrefix = "mcp__"

// Limits of MCP servers.
const (
	mcpStart = 30 * time.Second
	mcpCall  = 5 * time.Minute
	mcpEnd   = 2 * time.Second
)

// mcpServer is the command of a configured server. Servers without a command are not supported.
type mcpServer struct {
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
}

// servers returns the configured servers; the configuration was checked at the start.
func (a *agent) servers() map[string]mcpServer {
	all := map[string]mcpServer{}
	for _, arg := range a.opt.mcp {
		data, err := pathOrJSON(arg)
		if err != nil {
			continue
		}
		var conf struct {
			Servers map[string]mcpServer `json:"mcpServers"`
		}
		if json.Unmarshal(data, &conf) == nil {
			maps.Copy(all, conf.Servers)
		}
	}
	return all
}

// mcpServers lists the configured servers. Unlike the real CLI, the simulator starts a server only when one of its
// tools is called, so that other runs need not start it.
func (a *agent) mcpServers() []map[string]string {
	list := []map[string]string{}
	servers := a.servers()
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		status := "pending"
		if servers[name].Command == "" {
			status = "failed"
		}
		list = append(list, map[string]string{"name": name, "status": status})
	}
	return list
}

// connect starts a server, or returns the existing session.
func (a *agent) connect(ctx context.Context, name string) (*mcp.ClientSession, error) {
	if s := a.sessions[name]; s != nil {
		return s, nil
	}
	conf, ok := a.servers()[name]
	if !ok || conf.Command == "" {
		return nil, fmt.Errorf("no MCP server %q can be started", name)
	}
	// The server outlives the call and ends with the session.
	cmd := exec.Command(conf.Command, conf.Args...)
	cmd.Dir, cmd.Stderr = a.cwd, os.Stderr
	cmd.Env = a.env[:len(a.env):len(a.env)]
	for key, value := range conf.Env {
		cmd.Env = append(cmd.Env, key+"="+value)
	}
	ctx, cancel := context.WithTimeout(ctx, mcpStart)
	defer cancel()
	client := mcp.NewClient(&mcp.Implementation{Name: "simagent", Version: Version}, nil)
	s, err := client.Connect(ctx, &mcp.CommandTransport{Command: cmd, TerminateDuration: mcpEnd}, nil)
	if err != nil {
		return nil, fmt.Errorf("start the MCP server %q: %w", name, err)
	}
	if a.sessions == nil {
		a.sessions = map[string]*mcp.ClientSession{}
	}
	a.sessions[name] = s
	return s, nil
}

// disconnect ends the servers.
func (a *agent) disconnect() {
	for _, s := range a.sessions {
		_ = s.Close()
	}
	a.sessions = nil
}

// callServer calls a tool of an MCP server.
func (a *agent) callServer(ctx context.Context, b block) outcome {
	server, tool, ok := strings.Cut(strings.TrimPrefix(b.Name, mcpPrefix), "__")
	if !ok {
		return toolFailure("Error: No such tool available: %s", b.Name)
	}
	s, err := a.connect(ctx, server)
	if err != nil {
		return toolFailure("Error: No such tool available: %s (%v)", b.Name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, mcpCall)
	defer cancel()
	res, err := s.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: b.Input})
	if err != nil {
		return toolFailure("%v", err)
	}
	var texts []string
	for _, c := range res.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			texts = append(texts, t.Text)
		}
	}
	text := strings.Join(texts, "\n")
	return outcome{text: text, isError: res.IsError, detail: text}
}
