package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/agentloop/wire"
)

// api drives errand's own agent, which is part of the runner, so nothing has to be installed on a VM. All its settings,
// including the run's token, are in one file of mode 0600.
type api struct{ cfg Config }

var _ Adapter = (*api)(nil)

func (a *api) Name() string { return NameAPI }

func (a *api) Capabilities() Capabilities {
	return Capabilities{Resume: true, Fork: true, Schema: true, Usage: true, MCP: true, Shell: true, API: "anthropic"}
}

// Command builds the command line. It fails for a spec without absolute directories, with a session that is not a UUID,
// or with tools that the agent does not have. It ignores MaxUSD, because the gateway counts the cost.
func (a *api) Command(s Spec) (Cmd, error) {
	if err := a.check(s); err != nil {
		return Cmd{}, fmt.Errorf("api command: %w", err)
	}
	settings, err := json.MarshalIndent(wire.Settings{
		WorkDir: s.WorkDir, Home: s.Home, Model: firstOf(s.Model, a.cfg.ModelFor(s.Step)), System: s.System,
		Resume: s.Resume, Session: s.Session, Fork: s.Fork, Tools: s.Tools, Shell: s.Shell, Deny: s.Deny, Schema: s.Schema, MCP: s.MCP,
		MaxTurns: firstOf(s.MaxTurns, DefaultMaxTurns), BaseURL: s.BaseURL, Token: s.RunToken,
	}, "", "  ")
	if err != nil {
		return Cmd{}, fmt.Errorf("api command: %w", err)
	}
	file := path.Join(s.RunDir, "agent.json")
	env := maps.Clone(a.cfg.Env)
	if env == nil {
		env = map[string]string{}
	}
	env["HOME"] = s.Home
	env["NO_PROXY"], env["no_proxy"] = "127.0.0.1,localhost", "127.0.0.1,localhost" // for requests of the tools to local servers
	return Cmd{
		Argv:  append(slices.Clone(a.cfg.Command), "--settings", file),
		Env:   env,
		Stdin: []byte(s.Prompt),
		Files: []File{{Path: file, Mode: 0o600, Content: settings}},
	}, nil
}

func (a *api) check(s Spec) error {
	if err := checkCommon(s); err != nil {
		return err
	}
	if s.Resume != "" && s.Session != "" && !s.Fork {
		return errors.New("a resumed session keeps its id; give Resume or Session, not both")
	}
	for _, tool := range s.Tools {
		if !slices.Contains(wire.Tools(), tool) {
			return fmt.Errorf("there is no tool %q; there are %s", tool, strings.Join(wire.Tools(), ", "))
		}
	}
	return nil
}

func (a *api) NewParser() Parser { return &apiParser{} }

// SessionFiles returns the session's file.
func (a *api) SessionFiles(_, _, session string) []string {
	if session == "" {
		return nil
	}
	return []string{path.Join(wire.SessionDir, session+".jsonl")}
}
