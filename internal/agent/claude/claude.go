// Package claude drives Claude Code and compatible programs.
//
// It builds the headless command line, and parses and judges the program's stream-json output. Its flags keep the
// repository from influencing the agent.
//
// Start with [New]. The rules for judging a run are at parser.Exit; permissions.go decides which tool calls are allowed.
package claude

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/agent/cli"
)

// Name is the name of the adapter in the configuration, and DefaultModel its model if the configuration sets none.
const (
	Name         = "claude"
	DefaultModel = "claude-sonnet-5"
)

// New returns the adapter for a program.
func New(p agent.Program) agent.Adapter { return &adapter{program: p} }

// adapter drives Claude Code and compatible programs. Every flag has been tested: those that look redundant keep the
// repository from influencing the agent.
type adapter struct{ program agent.Program }

func (c *adapter) Name() string { return Name }

func (c *adapter) Capabilities() agent.Capabilities {
	return agent.Capabilities{Resume: true, Schema: true, MCP: true, API: "anthropic"}
}

// Command builds the headless command line. It fails for a spec without absolute directories, with invalid JSON (which
// the agent would silently ignore), or with a session that is not a UUID.
func (c *adapter) Command(s agent.Spec) (agent.Cmd, error) {
	if err := c.check(s); err != nil {
		return agent.Cmd{}, fmt.Errorf("claude command: %w", err)
	}
	settings, err := settingsFile(s)
	if err != nil {
		return agent.Cmd{}, fmt.Errorf("claude command: %w", err)
	}
	mcp := []byte(s.MCP)
	if len(mcp) == 0 {
		mcp = []byte(`{"mcpServers":{}}`)
	}
	in := func(name string) string { return path.Join(s.RunDir, name) }
	cmd := agent.Cmd{
		Env:   c.env(s),
		Stdin: []byte(cli.EscapePrompt(s.Prompt)),
		Files: []agent.File{
			{Path: in("settings.json"), Mode: 0o600, Content: settings},
			{Path: in("mcp.json"), Mode: 0o600, Content: mcp},
		},
	}
	cmd.Argv = append([]string{}, c.program.Command...)
	cmd.Argv = append(cmd.Argv, "-p", "--output-format", "stream-json", "--verbose",
		"--model", s.Model,
		"--setting-sources", "", "--strict-mcp-config",
		"--settings", in("settings.json"), "--mcp-config", in("mcp.json"))
	if s.MaxTurns > 0 {
		cmd.Argv = append(cmd.Argv, "--max-turns", strconv.Itoa(s.MaxTurns))
	}
	rules, err := cli.ShellRules(s)
	if err != nil {
		return agent.Cmd{}, fmt.Errorf("claude command: %w", err)
	}
	cmd.Files = append(cmd.Files, rules)
	if s.System != "" {
		cmd.Files = append(cmd.Files, agent.File{Path: in("rules.md"), Mode: 0o600, Content: []byte(s.System)})
		cmd.Argv = append(cmd.Argv, "--append-system-prompt-file", in("rules.md"))
	}
	cmd.Argv = append(cmd.Argv, "--tools", strings.Join(codingTools(), ","))
	cmd.Argv = append(cmd.Argv, permissionOptions(s)...)
	if s.MaxUSD > 0 {
		cmd.Argv = append(cmd.Argv, "--max-budget-usd", strconv.FormatFloat(s.MaxUSD, 'f', -1, 64))
	}
	if len(s.Schema) > 0 {
		cmd.Argv = append(cmd.Argv, "--json-schema", compact(s.Schema))
	}
	cmd.Argv = append(cmd.Argv, sessionOptions(s)...)
	return cmd, nil
}

// check refuses a spec that the agent would misinterpret.
func (c *adapter) check(s agent.Spec) error {
	if s.Resume != "" && s.Session != "" {
		return errors.New("a resumed session keeps its id; give Resume or Session, not both")
	}
	return cli.CheckSpec(s)
}

// env returns the agent's environment. The configured variables are set first, so that they cannot redirect the agent's
// calls.
func (c *adapter) env(s agent.Spec) map[string]string {
	env := maps.Clone(c.program.Env)
	if env == nil {
		env = map[string]string{}
	}
	maps.Copy(env, map[string]string{
		"HOME":              s.Home,
		"CLAUDE_CONFIG_DIR": path.Join(s.Home, configDir),
		"IS_SANDBOX":        "1", // only effective as root
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
		"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS":     "1",
		"DISABLE_AUTOUPDATER":                      "1",
		// Otherwise it calls the model at once, without the tools of servers that start slowly.
		"MCP_CONNECTION_NONBLOCKING": "false",
		"MCP_CONNECT_TIMEOUT_MS":     "30000",
		"DISABLE_TELEMETRY":          "1",
		"DISABLE_ERROR_REPORTING":    "1",
		"NO_PROXY":                   "127.0.0.1,localhost", // otherwise calls to the loopback gateway go through the proxy
		"no_proxy":                   "127.0.0.1,localhost",
	})
	if _, set := env["CLAUDE_CODE_MAX_RETRIES"]; !set {
		env["CLAUDE_CODE_MAX_RETRIES"] = "6"
	}
	if _, set := env[cli.JudgeVariable]; !set {
		env[cli.JudgeVariable] = "{runner}"
	}
	if model := s.Model; strings.Contains(model, "-") { // not an alias, which these variables do not resolve
		for _, name := range modelVariables() {
			if _, set := env[name]; !set {
				env[name] = model
			}
		}
	}
	if s.BaseURL != "" {
		env["ANTHROPIC_BASE_URL"] = s.BaseURL
	}
	if s.RunToken != "" {
		env["ANTHROPIC_AUTH_TOKEN"] = s.RunToken
	}
	return env
}

// SessionFiles returns the session's file and the directory with its large outputs.
func (c *adapter) SessionFiles(workDir, session string) []string {
	if session == "" {
		return nil
	}
	base := path.Join(configDir, "projects", notAlphanumeric.ReplaceAllString(workDir, "-"), session)
	return []string{base + ".jsonl", base}
}

func (c *adapter) NewParser() agent.Parser { return &parser{} }

// sessionOptions returns the options that select the conversation.
func sessionOptions(s agent.Spec) []string {
	var args []string
	if s.Resume != "" {
		args = append(args, "--resume", s.Resume)
	}
	if s.Session != "" {
		args = append(args, "--session-id", s.Session)
	}
	return args
}

// codingTools returns the tools for coding; further ones would cost tokens in every request.
func codingTools() []string { return []string{"Bash", "Edit", "Read", "Write", "Glob", "Grep"} }

// modelVariables returns the variables that select the models for titles and sub-agents. The gateway would refuse any
// model except the run's own.
func modelVariables() []string {
	return []string{"ANTHROPIC_DEFAULT_HAIKU_MODEL", "ANTHROPIC_SMALL_FAST_MODEL", "CLAUDE_CODE_SUBAGENT_MODEL"}
}

// configDir is the directory with the sessions, below the home directory.
const configDir = ".claude"

var notAlphanumeric = regexp.MustCompile(`[^A-Za-z0-9]`)

// compact returns valid JSON on one line.
func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return b.String()
}
