package agent

import (
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
)

// gemini drives Gemini CLI. Its flags have been tested. The program prefers the checkout's settings, including hooks
// and programs to start, over the user's, so it is started with a guard that hides them. It reads the checkout's
// GEMINI.md on its own.
type gemini struct{ cfg Config }

var _ Adapter = (*gemini)(nil)

func (g *gemini) Name() string { return NameGemini }

func (g *gemini) Capabilities() Capabilities {
	return Capabilities{Resume: true, Usage: true, MCP: true, Shell: true, API: "gemini", Helpers: geminiHelpers()}
}

// geminiHelpers returns the models that the program calls in addition to its own: to detect loops, to correct edits,
// and to summarize long output.
func geminiHelpers() []string {
	return []string{"gemini-2.5-flash", "gemini-2.5-flash-lite", "gemini-3-flash-preview", "gemini-3.1-flash-lite"}
}

// geminiGuard is loaded before the program and hides the checkout's settings from it.
//
//go:embed gemini_guard.cjs
var geminiGuard []byte

// Command builds the headless command line. It fails for a spec without absolute directories, with a feature that this
// agent does not have, or with a session that is not a UUID.
func (g *gemini) Command(s Spec) (Cmd, error) {
	if err := checkCommon(s); err != nil {
		return Cmd{}, fmt.Errorf("gemini command: %w", err)
	}
	switch {
	case len(s.Schema) > 0:
		return Cmd{}, errors.New("gemini command: this adapter cannot hold an answer to a schema")
	case s.Fork:
		return Cmd{}, errors.New("gemini command: this adapter cannot fork a session")
	case s.Resume != "" && s.Session != "":
		return Cmd{}, errors.New("gemini command: a resumed session keeps its id; give Resume or Session, not both")
	}
	settings, err := g.settings(s)
	if err != nil {
		return Cmd{}, fmt.Errorf("gemini command: %w", err)
	}
	policy, err := geminiPolicy(s.Deny)
	if err != nil {
		return Cmd{}, fmt.Errorf("gemini command: %w", err)
	}
	run := func(name string) string { return path.Join(s.RunDir, name) }
	home := func(name string) string { return path.Join(s.Home, geminiDir, name) }
	cmd := Cmd{
		Env:   g.env(s, run("guard.cjs")),
		Stdin: []byte(geminiPrompt(s.Prompt)),
		Files: []File{
			{Path: home("settings.json"), Mode: 0o600, Content: settings},
			{Path: home("GEMINI.md"), Mode: 0o600, Content: []byte(s.System)},
			{Path: run("policy.toml"), Mode: 0o600, Content: policy},
			{Path: run("guard.cjs"), Mode: 0o600, Content: geminiGuard},
		},
	}
	if s.Shell != nil {
		file, err := shellFile(s)
		if err != nil {
			return Cmd{}, fmt.Errorf("gemini command: %w", err)
		}
		cmd.Files = append(cmd.Files, file)
	}
	cmd.Argv = append([]string{}, g.cfg.Command...)
	cmd.Argv = append(cmd.Argv, "--output-format", "stream-json", "--model", firstOf(s.Model, g.cfg.ModelFor(s.Step)),
		"--approval-mode", "yolo", "--skip-trust", "--policy", run("policy.toml"))
	switch {
	case s.Resume != "":
		cmd.Argv = append(cmd.Argv, "--resume", s.Resume)
	case s.Session != "":
		cmd.Argv = append(cmd.Argv, "--session-id", s.Session)
	}
	return cmd, nil
}

// geminiDir is the directory of settings and sessions, below the home directory.
const geminiDir = ".gemini"

// geminiTools returns the tools for coding; those for the web could reach nothing.
func geminiTools() []string {
	return []string{"read_file", "write_file", "replace", "run_shell_command", "list_directory", "glob", "grep_search"}
}

// geminiAttempts is the number of attempts for a request when the model is unavailable. Between attempts, the program
// waits 5 s and more without output.
const geminiAttempts = 4

// settings returns the user's settings file, which must exist.
func (g *gemini) settings(s Spec) ([]byte, error) {
	attempts := geminiAttempts
	if n, err := strconv.Atoi(g.cfg.Env["ERRAND_GEMINI_ATTEMPTS"]); err == nil && n > 0 {
		attempts = n
	}
	servers, names, err := geminiServers(s.MCP)
	if err != nil {
		return nil, err
	}
	tools := s.Tools
	if len(tools) == 0 {
		tools = geminiTools()
	}
	tools = slices.Clone(tools)
	for _, name := range names { // the list covers all tools, including those of MCP servers
		tools = append(tools, "mcp_"+name+"_*")
	}
	type section = map[string]any
	hooks := section{}
	if s.Shell != nil { // the checkout's settings cannot override it, because they are hidden
		hooks["BeforeTool"] = []section{{"matcher": "run_shell_command", "hooks": []section{
			{"name": "errand", "type": "command", "command": judgeCommand(s), "timeout": judgeSeconds * 1000},
		}}}
	}
	return json.MarshalIndent(section{
		"security":    section{"auth": section{"selectedType": "gemini-api-key"}},
		"privacy":     section{"usageStatisticsEnabled": false},
		"telemetry":   section{"enabled": false},
		"general":     section{"enableAutoUpdate": false, "enableAutoUpdateNotification": false, "maxAttempts": attempts},
		"model":       section{"maxSessionTurns": firstOf(s.MaxTurns, DefaultMaxTurns)},
		"context":     section{"includeDirectoryTree": false},
		"tools":       section{"core": tools},
		"hooksConfig": section{"enabled": s.Shell != nil},
		"hooks":       hooks,
		"advanced":    section{"ignoreLocalEnv": true},
		"mcp":         section{"allowed": names},
		"mcpServers":  servers,
	}, "", "  ")
}

// geminiServers translates MCP servers into the program's format: the URL of an HTTP server has another key, and calls
// need no confirmation.
func geminiServers(mcp json.RawMessage) (servers map[string]map[string]any, names []string, err error) {
	var in struct {
		Servers map[string]map[string]any `json:"mcpServers"`
	}
	if len(mcp) > 0 {
		if err := json.Unmarshal(mcp, &in); err != nil {
			return nil, nil, fmt.Errorf("the MCP configuration: %w", err)
		}
	}
	servers, names = map[string]map[string]any{}, []string{}
	for _, name := range sortedKeys(in.Servers) {
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
func (g *gemini) env(s Spec, guard string) map[string]string {
	env := maps.Clone(g.cfg.Env)
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
	if _, set := env[judgeVariable]; !set && s.Shell != nil {
		env[judgeVariable] = "{runner}"
	}
	if s.RunToken != "" {
		env["GEMINI_API_KEY"] = s.RunToken
	}
	return env
}

var notSlug = regexp.MustCompile(`[^a-z0-9]+`)

// SessionFiles returns the sessions of the checkout and the index by which the program finds them. The program numbers
// several checkouts of one name, but an agent's home has only one.
func (g *gemini) SessionFiles(_, workDir, session string) []string {
	if session == "" {
		return nil
	}
	project := strings.Trim(notSlug.ReplaceAllString(strings.ToLower(path.Base(workDir)), "-"), "-")
	base := path.Join(geminiDir, "tmp", firstOf(project, "project"))
	return []string{path.Join(geminiDir, "projects.json"), path.Join(base, ".project_root"), path.Join(base, "chats")}
}

func (g *gemini) NewParser() Parser { return &geminiParser{} }

// geminiPrompt disables the program's expansions in a prompt. It is like neutralise, but escapes an @ inside a word,
// too.
func geminiPrompt(prompt string) string {
	slash := strings.HasPrefix(strings.TrimSpace(prompt), "/")
	escaped := strings.ReplaceAll(prompt, "@", `\@`)
	if slash {
		escaped = slashLine + escaped
	}
	if strings.Contains(prompt, "@") {
		escaped += escapeLine
	}
	return escaped
}
