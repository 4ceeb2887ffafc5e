package agent

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
)

// claude drives Claude Code and compatible programs. Every flag has been tested: those that look redundant keep the
// repository from influencing the agent.
type claude struct{ cfg Config }

var _ Adapter = (*claude)(nil)

func (c *claude) Name() string { return NameClaude }

func (c *claude) Capabilities() Capabilities {
	return Capabilities{Resume: true, Fork: true, Schema: true, Usage: true, Cost: true, MCP: true, Shell: true, API: "anthropic"}
}

// Command builds the headless command line. It fails for a spec without absolute directories, with invalid JSON (which
// the agent would silently ignore), or with a session that is not a UUID.
func (c *claude) Command(s Spec) (Cmd, error) {
	if err := c.check(s); err != nil {
		return Cmd{}, fmt.Errorf("claude command: %w", err)
	}
	settings, err := claudeSettings(s)
	if err != nil {
		return Cmd{}, fmt.Errorf("claude command: %w", err)
	}
	mcp := []byte(s.MCP)
	if len(mcp) == 0 {
		mcp = []byte(`{"mcpServers":{}}`)
	}
	in := func(name string) string { return path.Join(s.RunDir, name) }
	cmd := Cmd{
		Env:   c.env(s),
		Stdin: []byte(neutralise(s.Prompt)),
		Files: []File{
			{Path: in("settings.json"), Mode: 0o600, Content: settings},
			{Path: in("mcp.json"), Mode: 0o600, Content: mcp},
		},
	}
	cmd.Argv = append([]string{}, c.cfg.Command...)
	cmd.Argv = append(cmd.Argv, "-p", "--output-format", "stream-json", "--verbose",
		"--model", firstOf(s.Model, c.cfg.ModelFor(s.Step)),
		"--setting-sources", "", "--strict-mcp-config",
		"--settings", in("settings.json"), "--mcp-config", in("mcp.json"),
		"--max-turns", strconv.Itoa(firstOf(s.MaxTurns, DefaultMaxTurns)))
	rules, err := shellFile(s)
	if err != nil {
		return Cmd{}, fmt.Errorf("claude command: %w", err)
	}
	cmd.Files = append(cmd.Files, rules)
	if s.System != "" {
		cmd.Files = append(cmd.Files, File{Path: in("rules.md"), Mode: 0o600, Content: []byte(s.System)})
		cmd.Argv = append(cmd.Argv, "--append-system-prompt-file", in("rules.md"))
	}
	tools := s.Tools
	if len(tools) == 0 {
		tools = claudeTools()
	}
	cmd.Argv = append(cmd.Argv, "--tools", strings.Join(tools, ","))
	cmd.Argv = append(cmd.Argv, claudePermissions(s, tools)...)
	if s.MaxUSD > 0 {
		cmd.Argv = append(cmd.Argv, "--max-budget-usd", strconv.FormatFloat(s.MaxUSD, 'f', -1, 64))
	}
	if len(s.Schema) > 0 {
		cmd.Argv = append(cmd.Argv, "--json-schema", compact(s.Schema))
	}
	cmd.Argv = append(cmd.Argv, claudeSession(s)...)
	return cmd, nil
}

// claudeSession returns the options that select the conversation.
func claudeSession(s Spec) []string {
	var args []string
	if s.Resume != "" {
		args = append(args, "--resume", s.Resume)
	}
	if s.Fork {
		args = append(args, "--fork-session")
	}
	if s.Session != "" {
		args = append(args, "--session-id", s.Session)
	}
	return args
}

// claudeTools returns the tools for coding; further ones would cost tokens in every request.
func claudeTools() []string { return []string{"Bash", "Edit", "Read", "Write", "Glob", "Grep"} }

// check refuses a spec that the agent would misinterpret.
func (c *claude) check(s Spec) error {
	if s.Resume != "" && s.Session != "" && !s.Fork {
		return errors.New("a resumed session keeps its id; give Resume or Session, not both")
	}
	return checkCommon(s)
}

// env returns the agent's environment. The configured variables are set first, so that they cannot redirect the agent's
// calls.
func (c *claude) env(s Spec) map[string]string {
	env := maps.Clone(c.cfg.Env)
	if env == nil {
		env = map[string]string{}
	}
	maps.Copy(env, map[string]string{
		"HOME":              s.Home,
		"CLAUDE_CONFIG_DIR": path.Join(s.Home, claudeDir),
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
	if _, set := env[judgeVariable]; !set {
		env[judgeVariable] = "{runner}"
	}
	if model := firstOf(s.Model, c.cfg.ModelFor(s.Step)); strings.Contains(model, "-") { // not an alias, which these variables do not resolve
		for _, name := range claudeModels() {
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

// claudeModels returns the variables that select the models for titles and sub-agents. The gateway would refuse any
// model except the run's own.
func claudeModels() []string {
	return []string{"ANTHROPIC_DEFAULT_HAIKU_MODEL", "ANTHROPIC_SMALL_FAST_MODEL", "CLAUDE_CODE_SUBAGENT_MODEL"}
}

// claudeDir is the directory with the sessions, below the home directory.
const claudeDir = ".claude"

var notAlphanumeric = regexp.MustCompile(`[^A-Za-z0-9]`)

// SessionFiles returns the session's file and the directory with its large outputs.
func (c *claude) SessionFiles(_, workDir, session string) []string {
	if session == "" {
		return nil
	}
	base := path.Join(claudeDir, "projects", notAlphanumeric.ReplaceAllString(workDir, "-"), session)
	return []string{base + ".jsonl", base}
}

func (c *claude) NewParser() Parser { return &claudeParser{} }

// compact returns valid JSON on one line.
func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return b.String()
}

// firstOf returns the first non-zero value.
func firstOf[T comparable](values ...T) T {
	var zero T
	for _, v := range values {
		if v != zero {
			return v
		}
	}
	return zero
}
