package agent

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// codex drives OpenAI's Codex CLI. All its settings are on the command line: it reads neither its own configuration
// file, which an agent could have modified in an earlier run, nor the checkout's. It has no limit on model calls or
// cost; the gateway enforces those.
type codex struct{ cfg Config }

var _ Adapter = (*codex)(nil)

func (c *codex) Name() string { return NameCodex }

// Capabilities reports that Codex chooses the ids of sessions itself and has no limit on model calls.
func (c *codex) Capabilities() Capabilities {
	return Capabilities{Resume: true, Fork: true, Schema: true, Usage: true, MCP: true, OwnSessionID: true, NoTurnLimit: true, Shell: true, API: "openai"}
}

// codexKey is the variable with the run's token. It is hidden from the agent's commands.
const codexKey = "ERRAND_MODEL_TOKEN"

// codexDir is the directory of sessions and rules, below the home directory.
const codexDir = ".codex"

// maxArgument bounds one argument of a command line in bytes. Linux accepts 128 KiB.
const maxArgument = 120 << 10

// Command builds the headless command line. It fails for a spec without absolute directories or with invalid JSON, and
// for a list of tools, because Codex cannot be limited to some of its tools.
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
	// These files replace those of an earlier run; creating them also creates the folder, which must exist.
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
		"--dangerously-bypass-approvals-and-sandbox", // the VM is the sandbox
		"--model", firstOf(s.Model, c.cfg.ModelFor(s.Step)))
	file, err := shellFile(s)
	if err != nil {
		return Cmd{}, fmt.Errorf("codex command: %w", err)
	}
	cmd.Files = append(cmd.Files, file)
	cmd.Argv = append(cmd.Argv, "--dangerously-bypass-hook-trust") // errand's hook is the only one
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

// check refuses a spec that the agent would misinterpret.
func (c *codex) check(s Spec) error {
	if err := checkCommon(s); err != nil {
		return err
	}
	if len(s.Tools) > 0 {
		return errors.New("its tools cannot be limited to some")
	}
	return nil
}

// codexSettings returns the settings, each as key=value in TOML. Secrets of MCP servers are put into env.
func codexSettings(s Spec, env map[string]string) ([]string, error) {
	set := []string{
		`web_search="disabled"`, // the provider would search, which bypasses the egress rules
		"project_doc_max_bytes=0",
		"skills.include_instructions=false", "skills.bundled.enabled=false",
		"analytics.enabled=false", "check_for_update_on_startup=false",
		// Commands get the whole environment, including git's settings, but not the model's token.
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

// codexIdle is the idle timeout of a stream in milliseconds. It is longer than the runner holds a request while errand
// is not attached.
const codexIdle = 660_000

// codexFeaturesOff returns the features that a run does not need: those that contact other hosts (plugins, apps), spend
// tokens on their own, or wait for a network without limit.
func codexFeaturesOff() []string {
	return []string{"apps", "goals", "image_generation", "multi_agent", "plugins", "shell_snapshot", "tool_suggest", "unbounded_connection_retries"}
}

// env returns the agent's environment. The configured variables are set first, so that they cannot redirect the agent's
// calls.
func (c *codex) env(s Spec) map[string]string {
	env := maps.Clone(c.cfg.Env)
	if env == nil {
		env = map[string]string{}
	}
	maps.Copy(env, map[string]string{
		"HOME":       s.Home,
		"CODEX_HOME": path.Join(s.Home, codexDir),
		"NO_PROXY":   "127.0.0.1,localhost", // otherwise calls to the loopback gateway go through the proxy
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

// codexRules returns deny rules in the format of Codex. A rule is the beginning of a command, plain or in Claude's
// form, Bash(git push:*). Rules about other tools are skipped, because Codex has no equivalent.
func codexRules(deny []string) ([]byte, error) {
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
		fmt.Fprintf(&b, "prefix_rule(pattern=%s, decision=\"forbidden\")\n", tomlStrings(words))
	}
	return []byte(b.String()), nil
}

// SessionFiles returns the folder of all sessions, because the name of a session's file contains its date and time.
func (c *codex) SessionFiles(_, _, session string) []string {
	if session == "" {
		return nil
	}
	return []string{path.Join(codexDir, "sessions")}
}

func (c *codex) NewParser() Parser { return &codexParser{} }
