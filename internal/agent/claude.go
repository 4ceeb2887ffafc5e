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

// claude drives Claude Code and what behaves like it. The command line is the one that was
// measured; where a flag looks needless, leaving it out opens a door for the repository.
type claude struct{ cfg Config }

var _ Adapter = (*claude)(nil)

func (c *claude) Name() string { return NameClaude }

func (c *claude) Capabilities() Capabilities {
	return Capabilities{Resume: true, Fork: true, Schema: true, Usage: true, Cost: true, MCP: true, Shell: true, API: "anthropic"}
}

// Command builds the headless command line. It fails for a spec that names no directories, that
// carries JSON which does not parse (the agent ignores wrong settings in silence, so they are
// checked here), or whose session is no UUID.
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

// claudeSession says which conversation the run belongs to.
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

// claudeTools are enough for coding work; the rest would cost tokens in every request.
func claudeTools() []string { return []string{"Bash", "Edit", "Read", "Write", "Glob", "Grep"} }

// check refuses what the agent would misread.
func (c *claude) check(s Spec) error {
	if s.Resume != "" && s.Session != "" && !s.Fork {
		return errors.New("a resumed session keeps its id; give Resume or Session, not both")
	}
	return checkCommon(s)
}

// env is the agent's environment. The configured one comes first, so that it cannot send the
// agent's calls elsewhere.
func (c *claude) env(s Spec) map[string]string {
	env := maps.Clone(c.cfg.Env)
	if env == nil {
		env = map[string]string{}
	}
	maps.Copy(env, map[string]string{
		"HOME":              s.Home,
		"CLAUDE_CONFIG_DIR": path.Join(s.Home, claudeDir),
		"IS_SANDBOX":        "1", // only has an effect as root
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
		"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS":     "1",
		"DISABLE_AUTOUPDATER":                      "1",
		// Else it asks the model at once, without the tools of servers that need a while to come up.
		"MCP_CONNECTION_NONBLOCKING": "false",
		"MCP_CONNECT_TIMEOUT_MS":     "30000",
		"DISABLE_TELEMETRY":          "1",
		"DISABLE_ERROR_REPORTING":    "1",
		"NO_PROXY":                   "127.0.0.1,localhost", // else the loopback gateway is asked through the proxy
		"no_proxy":                   "127.0.0.1,localhost",
	})
	if _, set := env["CLAUDE_CODE_MAX_RETRIES"]; !set {
		env["CLAUDE_CODE_MAX_RETRIES"] = "6"
	}
	if _, set := env[judgeVariable]; !set {
		env[judgeVariable] = "{runner}"
	}
	if model := firstOf(s.Model, c.cfg.ModelFor(s.Step)); strings.Contains(model, "-") { // no alias, which it would not look up
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

// claudeModels are the variables that name what it asks beside its own model, for titles and for sub-agents:
// the gateway would refuse any other.
func claudeModels() []string {
	return []string{"ANTHROPIC_DEFAULT_HAIKU_MODEL", "ANTHROPIC_SMALL_FAST_MODEL", "CLAUDE_CODE_SUBAGENT_MODEL"}
}

// claudeDir is where sessions are, below the home directory.
const claudeDir = ".claude"

var notAlphanumeric = regexp.MustCompile(`[^A-Za-z0-9]`)

// SessionFiles returns the session's file and the directory of what did not fit into it.
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

// firstOf returns the first value that is not zero.
func firstOf[T comparable](values ...T) T {
	var zero T
	for _, v := range values {
		if v != zero {
			return v
		}
	}
	return zero
}
