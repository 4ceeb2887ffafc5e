package agent

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// codex drives OpenAI's Codex CLI. Everything that it is told stands on its command line: its own
// configuration file, which an agent could have written in an earlier run, is not read, and neither is
// the checkout's. It has no bound on model calls nor on money; the gateway holds those.
type codex struct{ cfg Config }

var _ Adapter = (*codex)(nil)

func (c *codex) Name() string { return NameCodex }

// Capabilities: Codex gives a session its id itself, and makes as many model calls as it likes.
func (c *codex) Capabilities() Capabilities {
	return Capabilities{Resume: true, Fork: true, Schema: true, Usage: true, MCP: true, OwnSessionID: true, NoTurnLimit: true, Shell: true, API: "openai"}
}

// codexKey names the variable with the run's token. The agent's commands do not see it.
const codexKey = "ERRAND_MODEL_TOKEN"

// codexDir is where Codex keeps sessions and rules, below the home directory.
const codexDir = ".codex"

// maxArgument bounds one argument of a command line: Linux takes 128 KiB.
const maxArgument = 120 << 10

// Command builds the headless command line. It fails for a spec that names no directories or carries
// JSON which does not parse, and for what Codex cannot do: keep to some of its tools.
func (c *codex) Command(s Spec) (Cmd, error) {
	if err := c.check(s); err != nil {
		return Cmd{}, fmt.Errorf("codex command: %w", err)
	}
	rules, err := codexRules(s.Deny)
	if err != nil {
		return Cmd{}, fmt.Errorf("codex command: %w", err)
	}
	cmd := Cmd{
		Env:   c.env(s),
		Stdin: []byte(neutraliseSkills(s.Prompt)),
	}
	// These replace what an earlier run may have left, and make the folder, which must exist.
	for name, content := range map[string][]byte{"rules/errand.rules": rules, "AGENTS.md": nil, "AGENTS.override.md": nil, "hooks.json": []byte("{}\n")} {
		cmd.Files = append(cmd.Files, File{Path: path.Join(s.Home, codexDir, name), Mode: 0o600, Content: content})
	}
	slices.SortFunc(cmd.Files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	cmd.Argv = append(append(cmd.Argv, c.cfg.Command...), "exec")
	switch {
	case s.Fork:
		cmd.Argv = append(cmd.Argv, "fork")
	case s.Resume != "":
		cmd.Argv = append(cmd.Argv, "resume")
	}
	cmd.Argv = append(cmd.Argv, "--json", "--ignore-user-config", "--skip-git-repo-check",
		"--dangerously-bypass-approvals-and-sandbox", // the box is the sandbox
		"--model", firstOf(s.Model, c.cfg.ModelFor(s.Step)))
	file, err := shellFile(s)
	if err != nil {
		return Cmd{}, fmt.Errorf("codex command: %w", err)
	}
	cmd.Files = append(cmd.Files, file)
	cmd.Argv = append(cmd.Argv, "--dangerously-bypass-hook-trust") // ours is the only one
	settings, err := codexSettings(s, cmd.Env)
	if err != nil {
		return Cmd{}, fmt.Errorf("codex command: %w", err)
	}
	for _, one := range settings {
		if len(one) > maxArgument {
			return Cmd{}, fmt.Errorf("codex command: the setting %.40s… has %d bytes; a command line takes %d", one, len(one), maxArgument)
		}
		cmd.Argv = append(cmd.Argv, "-c", one)
	}
	if len(s.Schema) > 0 {
		schema := path.Join(s.RunDir, "schema.json")
		cmd.Files = append(cmd.Files, File{Path: schema, Mode: 0o600, Content: s.Schema})
		cmd.Argv = append(cmd.Argv, "--output-schema", schema)
	}
	if s.Resume != "" {
		cmd.Argv = append(cmd.Argv, s.Resume)
	}
	cmd.Argv = append(cmd.Argv, "-")
	return cmd, nil
}

// check refuses what the agent would misread.
func (c *codex) check(s Spec) error {
	if err := checkCommon(s); err != nil {
		return err
	}
	if len(s.Tools) > 0 {
		return errors.New("its tools cannot be limited to some")
	}
	return nil
}

// codexSettings are the settings, each as key=value in TOML. Secrets of MCP servers go to env.
func codexSettings(s Spec, env map[string]string) ([]string, error) {
	set := []string{
		`web_search="disabled"`, // it would be the provider that looks, past the egress rules
		"project_doc_max_bytes=0",
		"skills.include_instructions=false", "skills.bundled.enabled=false",
		"analytics.enabled=false", "check_for_update_on_startup=false",
		// The commands get the whole environment, with git's settings in it, but not the model's token.
		fmt.Sprintf(`shell_environment_policy={inherit="all",ignore_default_excludes=true,exclude=[%s]}`, tomlString(codexKey)),
	}
	for _, feature := range codexFeaturesOff() {
		set = append(set, "features."+feature+"=false")
	}
	asks := "^apply_patch$"
	if s.Shell != nil {
		asks = "^(" + shellTool + "|apply_patch)$"
	}
	set = append(set, fmt.Sprintf(`hooks.PreToolUse=[{matcher=%s,hooks=[{type="command",command=%s,timeout=%d}]}]`,
		tomlString(asks), tomlString(judgeCommand(s)+" --refuse-only"), judgeSeconds))
	if s.BaseURL != "" {
		const provider = "model_providers.errand."
		set = append(set, `model_provider="errand"`, provider+`name="errand"`, provider+`wire_api="responses"`,
			provider+"base_url="+tomlString(strings.TrimSuffix(s.BaseURL, "/")+"/v1"), provider+"env_key="+tomlString(codexKey),
			fmt.Sprintf("%sstream_idle_timeout_ms=%d", provider, codexIdle))
	}
	if s.System != "" {
		set = append(set, "developer_instructions="+tomlString(s.System))
	}
	servers, err := codexMCP(s.MCP, env)
	return append(set, servers...), err
}

// codexIdle is how many milliseconds a stream may be silent: longer than the runner holds a request
// while nobody is attached.
const codexIdle = 660_000

// codexFeaturesOff are what a run has no use for: what asks other hosts (plugins, apps), what spends tokens by itself, and endless waiting for a network.
func codexFeaturesOff() []string {
	return []string{"apps", "goals", "image_generation", "multi_agent", "plugins", "shell_snapshot", "tool_suggest", "unbounded_connection_retries"}
}

// env is the agent's environment. The configured one comes first, so that it cannot send the
// agent's calls elsewhere.
func (c *codex) env(s Spec) map[string]string {
	env := maps.Clone(c.cfg.Env)
	if env == nil {
		env = map[string]string{}
	}
	maps.Copy(env, map[string]string{
		"HOME":       s.Home,
		"CODEX_HOME": path.Join(s.Home, codexDir),
		"NO_PROXY":   "127.0.0.1,localhost", // else the loopback gateway is asked through the proxy
		"no_proxy":   "127.0.0.1,localhost",
	})
	if s.RunToken != "" {
		env[codexKey] = s.RunToken
	}
	if _, set := env[judgeVariable]; !set {
		env[judgeVariable] = "{runner}"
	}
	return env
}

// codexRules writes deny rules as Codex reads them. A rule is a command's beginning, plain or in
// Claude's form, Bash(git push:*); what is no rule about commands Codex has no rule for.
func codexRules(deny []string) ([]byte, error) {
	var b strings.Builder
	b.WriteString("# Written by errand at the start of every run.\n")
	for _, rule := range deny {
		if strings.TrimSpace(rule) == "" || strings.ContainsAny(rule, "\n\x00") {
			return nil, fmt.Errorf("%q is no deny rule", rule)
		}
		inner, command := strings.CutPrefix(rule, "Bash(")
		if command {
			rule = strings.TrimSuffix(strings.TrimSuffix(inner, ")"), ":*")
		}
		words := strings.Fields(strings.TrimSuffix(rule, "*"))
		if len(words) == 0 || !command && rule[0] >= 'A' && rule[0] <= 'Z' {
			continue // Edit(…), or a tool as a whole
		}
		fmt.Fprintf(&b, "prefix_rule(pattern=%s, decision=\"forbidden\")\n", tomlStrings(words))
	}
	return []byte(b.String()), nil
}

// SessionFiles returns the folder of all sessions: a session's file has its day and time in its name.
func (c *codex) SessionFiles(_, _, session string) []string {
	if session == "" {
		return nil
	}
	return []string{path.Join(codexDir, "sessions")}
}

func (c *codex) NewParser() Parser { return &codexParser{} }
