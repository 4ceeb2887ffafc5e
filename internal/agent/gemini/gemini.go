// Package gemini drives Gemini CLI.
//
// It builds the command line, the settings file and the policy file, and parses and judges the program's stream-json
// output. guard.cjs hides the checkout's settings from the program.
//
// Start with [New]. The rules for judging a run are at parser.Exit.
package gemini

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/agent/cli"
)

// unlimitedTurns is the program's value for no limit on turns.
const unlimitedTurns = -1

// Name is the name of the adapter in the configuration, and DefaultGeminiModel its model if the configuration
// sets none.
const (
	Name         = "gemini"
	DefaultModel = "gemini-2.5-pro"
)

// adapter drives Gemini CLI. Its flags have been tested. The program prefers the checkout's settings, including hooks
// and programs to start, over the user's, so it is started with a guard that hides them. It reads the checkout's
// GEMINI.md on its own.
type adapter struct{ program agent.Program }

// New returns the adapter for a program.
func New(p agent.Program) agent.Adapter { return &adapter{program: p} }

func (g *adapter) Name() string { return Name }

func (g *adapter) Capabilities() agent.Capabilities {
	return agent.Capabilities{Resume: true, MCP: true, API: "gemini", Helpers: helperModels()}
}

// helperModels returns the models that the program calls in addition to its own: to detect loops, to correct edits,
// and to summarize long output.
func helperModels() []string {
	return []string{"gemini-2.5-flash", "gemini-2.5-flash-lite", "gemini-3-flash-preview", "gemini-3.1-flash-lite"}
}

// guardScript is loaded before the program and hides the checkout's settings from it.
//
//go:embed guard.cjs
var guardScript []byte

// Command builds the headless command line. It fails for a spec without absolute directories, with a feature that this
// agent does not have, or with a session that is not a UUID.
func (g *adapter) Command(s agent.Spec) (agent.Cmd, error) {
	if err := cli.CheckSpec(s); err != nil {
		return agent.Cmd{}, fmt.Errorf("gemini command: %w", err)
	}
	switch {
	case len(s.Schema) > 0:
		return agent.Cmd{}, errors.New("gemini command: this adapter cannot hold an answer to a schema")
	case s.Resume != "" && s.Session != "":
		return agent.Cmd{}, errors.New("gemini command: a resumed session keeps its id; give Resume or Session, not both")
	}
	settings, err := g.settings(s)
	if err != nil {
		return agent.Cmd{}, fmt.Errorf("gemini command: %w", err)
	}
	policy, err := policyFile(s.Deny, s.Attachments)
	if err != nil {
		return agent.Cmd{}, fmt.Errorf("gemini command: %w", err)
	}
	run := func(name string) string { return path.Join(s.RunDir, name) }
	home := func(name string) string { return path.Join(s.Home, configDir, name) }
	cmd := agent.Cmd{
		Env:   g.env(s, run("guard.cjs")),
		Stdin: []byte(escapePrompt(s.Prompt)),
		Files: []agent.File{
			{Path: home("settings.json"), Mode: 0o600, Content: settings},
			{Path: home("GEMINI.md"), Mode: 0o600, Content: []byte(s.System)},
			{Path: run("policy.toml"), Mode: 0o600, Content: policy},
			{Path: run("guard.cjs"), Mode: 0o600, Content: guardScript},
		},
	}
	if s.Shell != nil {
		file, err := cli.ShellRules(s)
		if err != nil {
			return agent.Cmd{}, fmt.Errorf("gemini command: %w", err)
		}
		cmd.Files = append(cmd.Files, file)
	}
	cmd.Argv = append([]string{}, g.program.Command...)
	cmd.Argv = append(cmd.Argv, "--output-format", "stream-json", "--model", s.Model,
		"--approval-mode", "yolo", "--skip-trust", "--policy", run("policy.toml"))
	switch {
	case s.Resume != "":
		cmd.Argv = append(cmd.Argv, "--resume", s.Resume)
	case s.Session != "":
		cmd.Argv = append(cmd.Argv, "--session-id", s.Session)
	}
	return cmd, nil
}

// configDir is the directory of settings and sessions, below the home directory.
const configDir = ".gemini"

// codingTools returns the tools for coding; those for the web could reach nothing.
func codingTools() []string {
	return []string{"read_file", "write_file", "replace", "run_shell_command", "list_directory", "glob", "grep_search"}
}

// maxAttempts is the number of attempts for a request when the model is unavailable. Between attempts, the program
// waits 5 s and more without output.
const maxAttempts = 4

// settings returns the user's settings file, which must exist.
func (g *adapter) settings(s agent.Spec) ([]byte, error) {
	attempts := maxAttempts
	if n, err := strconv.Atoi(g.program.Env["ERRAND_GEMINI_ATTEMPTS"]); err == nil && n > 0 {
		attempts = n
	}
	servers, names, err := mcpServers(s.MCP)
	if err != nil {
		return nil, err
	}
	tools := codingTools()
	for _, name := range names { // the list covers all tools, including those of MCP servers
		tools = append(tools, "mcp_"+name+"_*")
	}
	type section = map[string]any
	folders := []string{} // that the tools can read in addition to the checkout
	if s.Attachments != "" {
		folders = append(folders, s.Attachments)
	}
	hooks := section{}
	if s.Shell != nil { // the checkout's settings cannot override it, because they are hidden
		hooks["BeforeTool"] = []section{{"matcher": "run_shell_command", "hooks": []section{
			{"name": "errand", "type": "command", "command": cli.JudgeCommand(s), "timeout": cli.JudgeSeconds * 1000},
		}}}
	}
	return json.MarshalIndent(section{
		"security":    section{"auth": section{"selectedType": "gemini-api-key"}},
		"privacy":     section{"usageStatisticsEnabled": false},
		"telemetry":   section{"enabled": false},
		"general":     section{"enableAutoUpdate": false, "enableAutoUpdateNotification": false, "maxAttempts": attempts},
		"model":       section{"maxSessionTurns": cmp.Or(s.MaxTurns, unlimitedTurns)},
		"context":     section{"includeDirectoryTree": false, "includeDirectories": folders},
		"tools":       section{"core": tools},
		"hooksConfig": section{"enabled": s.Shell != nil},
		"hooks":       hooks,
		"advanced":    section{"ignoreLocalEnv": true},
		"mcp":         section{"allowed": names},
		"mcpServers":  servers,
	}, "", "  ")
}

// mcpServers translates MCP servers into the program's format: the URL of an HTTP server has another key, and calls
// need no confirmation.
func mcpServers(mcp json.RawMessage) (servers map[string]map[string]any, names []string, err error) {
	var in struct {
		Servers map[string]map[string]any `json:"mcpServers"`
	}
	if len(mcp) > 0 {
		if err := json.Unmarshal(mcp, &in); err != nil {
			return nil, nil, fmt.Errorf("the MCP configuration: %w", err)
		}
	}
	servers, names = map[string]map[string]any{}, []string{}
	for _, name := range slices.Sorted(maps.Keys(in.Servers)) {
		server := maps.Clone(in.Servers[name])
		if server == nil {
			return nil, nil, fmt.Errorf("the MCP server %s is not described", name)
		}
		if server["type"] == "http" {
			server["httpUrl"] = server["url"]
			delete(server, "url")
		}
		delete(server, "type")
		server["trust"] = true
		servers[name], names = server, append(names, name)
	}
	return servers, names, nil
}

// env returns the agent's environment. The configured variables are set first, so that they cannot redirect the agent's
// calls. Without its launcher, the program receives signals itself.
func (g *adapter) env(s agent.Spec, guard string) map[string]string {
	env := maps.Clone(g.program.Env)
	if env == nil {
		env = map[string]string{}
	}
	maps.Copy(env, map[string]string{
		"HOME":                   s.Home,
		"ERRAND_WORKDIR":         s.WorkDir,
		"GEMINI_CLI_NO_RELAUNCH": "true",
		"NODE_OPTIONS":           `--require="` + guard + `"`,
		"TERM":                   "xterm-256color",
		"COLORTERM":              "truecolor", // otherwise it prints a warning
		"NO_PROXY":               "127.0.0.1,localhost",
		"no_proxy":               "127.0.0.1,localhost",
	})
	if s.BaseURL != "" {
		env["GOOGLE_GEMINI_BASE_URL"] = s.BaseURL
	}
	if _, set := env[cli.JudgeVariable]; !set && s.Shell != nil {
		env[cli.JudgeVariable] = "{runner}"
	}
	if s.RunToken != "" {
		env["GEMINI_API_KEY"] = s.RunToken
	}
	return env
}

var notSlug = regexp.MustCompile(`[^a-z0-9]+`)

// SessionFiles returns the sessions of the checkout and the index by which the program finds them. The program numbers
// several checkouts of one name, but an agent's home has only one.
func (g *adapter) SessionFiles(workDir, session string) []string {
	if session == "" {
		return nil
	}
	project := strings.Trim(notSlug.ReplaceAllString(strings.ToLower(path.Base(workDir)), "-"), "-")
	base := path.Join(configDir, "tmp", cmp.Or(project, "project"))
	return []string{path.Join(configDir, "projects.json"), path.Join(base, ".project_root"), path.Join(base, "chats")}
}

func (g *adapter) NewParser() agent.Parser { return &parser{} }

// escapePrompt disables the program's expansions in a prompt. It is like neutralise, but escapes an @ inside a word,
// too.
func escapePrompt(prompt string) string {
	slash := strings.HasPrefix(strings.TrimSpace(prompt), "/")
	escaped := strings.ReplaceAll(prompt, "@", `\@`)
	if slash {
		escaped = cli.SlashNote + escaped
	}
	if strings.Contains(prompt, "@") {
		escaped += cli.EscapeNote
	}
	return escaped
}
