// Package codex drives OpenAI's Codex CLI.
//
// It builds the command line with all settings, and parses and judges the output of codex exec --json.
//
// Start with [New]. The rules for judging a run are at parser.Exit.
package codex

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/agent/cli"
)

// Name is the name of the adapter in the configuration, and DefaultCodexModel its model if the configuration sets
// none.
const (
	Name         = "codex"
	DefaultModel = "gpt-5.5"
)

// adapter drives OpenAI's Codex CLI. All its settings are on the command line: it reads neither its own configuration
// file, which an agent could have modified in an earlier run, nor the checkout's. It has no limit on model calls or
// cost; the gateway enforces those.
type adapter struct{ program agent.Program }

// New returns the adapter for a program.
func New(p agent.Program) agent.Adapter { return &adapter{program: p} }

func (c *adapter) Name() string { return Name }

// Capabilities reports that Codex chooses the ids of sessions itself and has no limit on model calls.
func (c *adapter) Capabilities() agent.Capabilities {
	return agent.Capabilities{Resume: true, Schema: true, MCP: true, NoTurnLimit: true, API: "openai"}
}

// tokenVariable is the variable with the run's token. It is hidden from the agent's commands.
const tokenVariable = "ERRAND_MODEL_TOKEN"

// configDir is the directory of sessions and rules, below the home directory.
const configDir = ".codex"

// maxArgument bounds one argument of a command line in bytes. Linux accepts 128 KiB.
const maxArgument = 120 << 10

// Command builds the headless command line. It fails for a spec without absolute directories or with invalid JSON.
func (c *adapter) Command(s agent.Spec) (agent.Cmd, error) {
	if err := cli.CheckSpec(s); err != nil {
		return agent.Cmd{}, fmt.Errorf("codex command: %w", err)
	}
	rules, err := rulesFile(s.Deny)
	if err != nil {
		return agent.Cmd{}, fmt.Errorf("codex command: %w", err)
	}
	cmd := agent.Cmd{
		Env:   c.env(s),
		Stdin: []byte(escapeSkills(s.Prompt)),
	}
	// These files replace those of an earlier run; creating them also creates the folder, which must exist.
	for name, content := range map[string][]byte{"rules/errand.rules": rules, "AGENTS.md": nil, "AGENTS.override.md": nil, "hooks.json": []byte("{}\n")} {
		cmd.Files = append(cmd.Files, agent.File{Path: path.Join(s.Home, configDir, name), Mode: 0o600, Content: content})
	}
	slices.SortFunc(cmd.Files, func(a, b agent.File) int { return strings.Compare(a.Path, b.Path) })
	cmd.Argv = append(append(cmd.Argv, c.program.Command...), "exec")
	if s.Resume != "" {
		cmd.Argv = append(cmd.Argv, "resume")
	}
	cmd.Argv = append(cmd.Argv, "--json", "--ignore-user-config", "--skip-git-repo-check",
		"--dangerously-bypass-approvals-and-sandbox", // the VM is the sandbox
		"--model", s.Model)
	file, err := cli.ShellRules(s)
	if err != nil {
		return agent.Cmd{}, fmt.Errorf("codex command: %w", err)
	}
	cmd.Files = append(cmd.Files, file)
	cmd.Argv = append(cmd.Argv, "--dangerously-bypass-hook-trust") // errand's hook is the only one
	settings, err := configSettings(s, cmd.Env)
	if err != nil {
		return agent.Cmd{}, fmt.Errorf("codex command: %w", err)
	}
	for _, one := range settings {
		if len(one) > maxArgument {
			return agent.Cmd{}, fmt.Errorf("codex command: the setting %.40s… has %d bytes; a command line takes %d", one, len(one), maxArgument)
		}
		cmd.Argv = append(cmd.Argv, "-c", one)
	}
	if len(s.Schema) > 0 {
		schema := path.Join(s.RunDir, "schema.json")
		cmd.Files = append(cmd.Files, agent.File{Path: schema, Mode: 0o600, Content: s.Schema})
		cmd.Argv = append(cmd.Argv, "--output-schema", schema)
	}
	if s.Resume != "" {
		cmd.Argv = append(cmd.Argv, s.Resume)
	}
	cmd.Argv = append(cmd.Argv, "-")
	return cmd, nil
}

// configSettings returns the settings, each as key=value in TOML. Secrets of MCP servers are put into env.
func configSettings(s agent.Spec, env map[string]string) ([]string, error) {
	set := []string{
		`web_search="disabled"`, // the provider would search, which bypasses the egress rules
		"project_doc_max_bytes=0",
		"skills.include_instructions=false", "skills.bundled.enabled=false",
		"analytics.enabled=false", "check_for_update_on_startup=false",
		// Commands get the whole environment, including git's settings, but not the model's token.
		fmt.Sprintf(`shell_environment_policy={inherit="all",ignore_default_excludes=true,exclude=[%s]}`, cli.TOMLString(tokenVariable)),
	}
	for _, feature := range disabledFeatures() {
		set = append(set, "features."+feature+"=false")
	}
	judgedTools := "^apply_patch$"
	if s.Shell != nil {
		judgedTools = "^(" + cli.ShellTool + "|apply_patch)$"
	}
	set = append(set, fmt.Sprintf(`hooks.PreToolUse=[{matcher=%s,hooks=[{type="command",command=%s,timeout=%d}]}]`,
		cli.TOMLString(judgedTools), cli.TOMLString(cli.JudgeCommand(s)+" --refuse-only"), cli.JudgeSeconds))
	if s.BaseURL != "" {
		const provider = "model_providers.errand."
		set = append(set, `model_provider="errand"`, provider+`name="errand"`, provider+`wire_api="responses"`,
			provider+"base_url="+cli.TOMLString(strings.TrimSuffix(s.BaseURL, "/")+"/v1"), provider+"env_key="+cli.TOMLString(tokenVariable),
			fmt.Sprintf("%sstream_idle_timeout_ms=%d", provider, streamIdleMS))
	}
	if s.System != "" {
		set = append(set, "developer_instructions="+cli.TOMLString(s.System))
	}
	servers, err := mcpSettings(s.MCP, env)
	return append(set, servers...), err
}

// streamIdleMS is the idle timeout of a stream in milliseconds. It is longer than the runner holds a request while errand
// is not attached.
const streamIdleMS = 660_000

// disabledFeatures returns the features that a run does not need: those that contact other hosts (plugins, apps), spend
// tokens on their own, or wait for a network without limit.
func disabledFeatures() []string {
	return []string{"apps", "goals", "image_generation", "multi_agent", "plugins", "shell_snapshot", "tool_suggest", "unbounded_connection_retries"}
}

// env returns the agent's environment. The configured variables are set first, so that they cannot redirect the agent's
// calls.
func (c *adapter) env(s agent.Spec) map[string]string {
	env := maps.Clone(c.program.Env)
	if env == nil {
		env = map[string]string{}
	}
	maps.Copy(env, map[string]string{
		"HOME":       s.Home,
		"CODEX_HOME": path.Join(s.Home, configDir),
		"NO_PROXY":   "127.0.0.1,localhost", // otherwise calls to the loopback gateway go through the proxy
		"no_proxy":   "127.0.0.1,localhost",
	})
	if s.RunToken != "" {
		env[tokenVariable] = s.RunToken
	}
	if _, set := env[cli.JudgeVariable]; !set {
		env[cli.JudgeVariable] = "{runner}"
	}
	return env
}

// rulesFile returns deny rules in the format of Codex. A rule is the beginning of a command, plain or in Claude's
// form, Bash(git push:*). Rules about other tools are skipped, because Codex has no equivalent.
func rulesFile(deny []string) ([]byte, error) {
	var b strings.Builder
	b.WriteString("# Written by errand at the start of every run.\n")
	for _, rule := range deny {
		if strings.TrimSpace(rule) == "" || strings.ContainsAny(rule, "\n\x00") {
			return nil, fmt.Errorf("%q is not a deny rule", rule)
		}
		inner, command := strings.CutPrefix(rule, "Bash(")
		if command {
			rule = strings.TrimSuffix(strings.TrimSuffix(inner, ")"), ":*")
		}
		words := strings.Fields(strings.TrimSuffix(rule, "*"))
		if len(words) == 0 || !command && rule[0] >= 'A' && rule[0] <= 'Z' {
			continue // Edit(…), or a whole tool
		}
		fmt.Fprintf(&b, "prefix_rule(pattern=%s, decision=\"forbidden\")\n", cli.TOMLStrings(words))
	}
	return []byte(b.String()), nil
}

// SessionFiles returns the folder of all sessions, because the name of a session's file contains its date and time.
func (c *adapter) SessionFiles(_, session string) []string {
	if session == "" {
		return nil
	}
	return []string{path.Join(configDir, "sessions")}
}

func (c *adapter) NewParser() agent.Parser { return &parser{} }
