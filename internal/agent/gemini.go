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

// gemini drives Gemini CLI. Its command line is the one that was measured. It reads settings of the
// checkout in preference to the user's, hooks and programs to start among them, so it is started with
// a guard that hides them; it reads the checkout's GEMINI.md by itself.
type gemini struct{ cfg Config }

var _ Adapter = (*gemini)(nil)

func (g *gemini) Name() string { return NameGemini }

func (g *gemini) Capabilities() Capabilities {
	return Capabilities{Resume: true, Usage: true, MCP: true, Shell: true, API: "gemini", Helpers: geminiHelpers()}
}

// geminiHelpers are what the program asks besides its model: whether it goes in circles, what an edit was meant to
// be, what a long output says.
func geminiHelpers() []string {
	return []string{"gemini-2.5-flash", "gemini-2.5-flash-lite", "gemini-3-flash-preview", "gemini-3.1-flash-lite"}
}

// geminiGuard is loaded before the program, and hides the checkout's settings from it.
//
//go:embed gemini_guard.cjs
var geminiGuard []byte

// Command builds the headless command line. It fails for a spec that names no directories, that asks
// for what this agent does not have, or whose session is no UUID.
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

// geminiDir is where settings and sessions are, below the home directory.
const geminiDir = ".gemini"

// geminiTools are enough for coding work; those for the web would go nowhere.
func geminiTools() []string {
	return []string{"read_file", "write_file", "replace", "run_shell_command", "list_directory", "glob", "grep_search"}
}

// geminiAttempts is how often a request is tried when the model cannot be had. Between them the
// program waits 5 s and more, and prints nothing.
const geminiAttempts = 4

// settings is the user's settings file, which has to be there.
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
	for _, name := range names { // the list is of all tools, those of servers as well
		tools = append(tools, "mcp_"+name+"_*")
	}
	type section = map[string]any
	hooks := section{}
	if s.Shell != nil { // ours, of which the checkout's own settings know nothing: they are hidden
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

// geminiServers are MCP servers as this program writes them: what is reached by HTTP has another key,
// and calls need no consent.
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

// env is the agent's environment. The configured one comes first, so that it cannot send the agent's
// calls elsewhere. Without its launcher the program hears signals.
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
		"COLORTERM":              "truecolor", // else it warns
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

// SessionFiles returns the sessions of the checkout, and how the program finds the checkout's. A home
// that has had several checkouts of one name would number them: an agent's home has one.
func (g *gemini) SessionFiles(_, workDir, session string) []string {
	if session == "" {
		return nil
	}
	project := strings.Trim(notSlug.ReplaceAllString(strings.ToLower(path.Base(workDir)), "-"), "-")
	base := path.Join(geminiDir, "tmp", firstOf(project, "project"))
	return []string{path.Join(geminiDir, "projects.json"), path.Join(base, ".project_root"), path.Join(base, "chats")}
}

func (g *gemini) NewParser() Parser { return &geminiParser{} }

// geminiPrompt takes away what the program would act on by itself: like neutralise, but an @ means
// something to it inside a word, too.
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
