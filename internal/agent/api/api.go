// Package api drives errand's own agent, which is part of the runner.
//
// It writes the settings file of a run, and parses and judges the lines that the agent loop prints. Both formats are
// defined by package wire.
//
// Start with [New].
package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/agent/cli"
	"github.com/errand-bot/errand/internal/agentloop/wire"
)

// Name is the name of the adapter in the configuration, and DefaultAPIModel its model if the configuration sets none.
const (
	Name         = "api"
	DefaultModel = "claude-sonnet-5"
)

// adapter drives errand's own agent, which is part of the runner, so nothing has to be installed on a VM. All its settings,
// including the run's token, are in one file of mode 0600.
type adapter struct{ program agent.Program }

// New returns the adapter for a program.
func New(p agent.Program) agent.Adapter { return &adapter{program: p} }

func (a *adapter) Name() string { return Name }

func (a *adapter) Capabilities() agent.Capabilities {
	return agent.Capabilities{Resume: true, Schema: true, MCP: true, API: "anthropic"}
}

// Command builds the command line. It fails for a spec without absolute directories, or with a session that is not a UUID.
// It ignores MaxUSD, because the gateway counts the cost.
func (a *adapter) Command(s agent.Spec) (agent.Cmd, error) {
	if err := a.check(s); err != nil {
		return agent.Cmd{}, fmt.Errorf("api command: %w", err)
	}
	settings, err := json.MarshalIndent(wire.Settings{
		WorkDir: s.WorkDir, Home: s.Home, Attachments: s.Attachments, Model: s.Model, System: s.System,
		Resume: s.Resume, Session: s.Session, Shell: s.Shell, Deny: s.Deny, Schema: s.Schema, MCP: s.MCP,
		MaxTurns: s.MaxTurns, BaseURL: s.BaseURL, Token: s.RunToken,
	}, "", "  ")
	if err != nil {
		return agent.Cmd{}, fmt.Errorf("api command: %w", err)
	}
	file := path.Join(s.RunDir, "agent.json")
	env := maps.Clone(a.program.Env)
	if env == nil {
		env = map[string]string{}
	}
	env["HOME"] = s.Home
	env["NO_PROXY"], env["no_proxy"] = "127.0.0.1,localhost", "127.0.0.1,localhost" // for requests of the tools to local servers
	return agent.Cmd{
		Argv:  append(slices.Clone(a.program.Command), "--settings", file),
		Env:   env,
		Stdin: []byte(s.Prompt),
		Files: []agent.File{{Path: file, Mode: 0o600, Content: settings}},
	}, nil
}

func (a *adapter) check(s agent.Spec) error {
	if err := cli.CheckSpec(s); err != nil {
		return err
	}
	if s.Resume != "" && s.Session != "" {
		return errors.New("a resumed session keeps its id; give Resume or Session, not both")
	}
	return nil
}

func (a *adapter) NewParser() agent.Parser { return &parser{} }

// SessionFiles returns the session's file.
func (a *adapter) SessionFiles(_, session string) []string {
	if session == "" {
		return nil
	}
	return []string{path.Join(wire.SessionDir, session+".jsonl")}
}
