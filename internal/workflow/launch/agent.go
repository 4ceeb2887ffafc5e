package launch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
	"time"

	"github.com/google/uuid"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/callback/tools"
	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/internal/runner"
	"github.com/errand-bot/errand/internal/runnerctl"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/internal/workflow/workspace"
	"github.com/errand-bot/errand/state"
)

// agentSpec prepares the checkout and returns the command that starts the run's agent there.
func (s *Steps) agentSpec(ctx context.Context, w *step.Attempt, ws *workspace.Workspace, l *state.Launch) (runner.Spec, error) {
	t := w.Task
	if l.IsRepair = repairs(t, ws.VM); !l.IsRepair {
		if err := s.checkout(ctx, w, ws, l); err != nil {
			return runner.Spec{}, err
		}
		if err := ws.AddTestFiles(ctx, l); err != nil {
			return runner.Spec{}, err
		}
	}
	adapter, route := s.choose(t)
	resume := resumable(t, ws.VM, adapter)
	l.Adapter, l.Model, l.Resumed = route.Adapter, route.Model, resume != ""
	prompt, attached, err := s.prompt(ctx, w, ws, l)
	if err != nil {
		return runner.Spec{}, fmt.Errorf("write the prompt: %w", err)
	}
	turns := s.turnLimit(t, l)
	if l.IsRepair && (turns == 0 || turns > repairTurns) {
		turns = repairTurns
	}
	l.TurnLimit, l.MaxTurns = turns, hardTurns(adapter.Capabilities(), turns)
	session := "" // a resumed session keeps its id
	if resume == "" {
		session = uuid.NewSHA1(uuid.NameSpaceURL, []byte("errand:"+t.Run.ID)).String()
	}
	runDir := path.Join(ws.Place.Home, ".errand", "runs", t.Run.ID)
	var form json.RawMessage
	if l.IsRepair {
		form = repairSchema(adapter.Capabilities(), t.Run.Kind)
	}
	cmd, err := adapter.Command(agent.Spec{
		WorkDir: ws.Place.Dir, Home: ws.Place.Home, RunDir: runDir, Attachments: attached, Step: string(t.Run.Kind), Model: l.Model,
		Prompt: prompt.User, System: prompt.System, Resume: resume, Session: session, Shell: callable(t.Settings), Deny: s.denied(t.Settings),
		MaxTurns: turns, MaxUSD: s.maxUSD(t, l.Adapter), BaseURL: s.modelURL(ws.Place.BaseURL, l.Adapter), RunToken: ws.RunToken(),
		MCP: toolServer(adapter, ws.Place, runDir), Schema: form,
	})
	if err != nil {
		return runner.Spec{}, &step.Problem{Reason: "The agent cannot be started with this prompt.", Hint: err.Error(), Class: state.ClassAgent, Permanent: true, Err: err}
	}
	head := runlog.Header{Run: t.Run.ID, Task: taskName(t), Step: string(t.Run.Kind), Agent: l.Adapter, Model: l.Model, Started: l.Started}
	head.System, _ = s.Redact.Redact(prompt.System)
	head.User, _ = s.Redact.Redact(prompt.User)
	l.Prompt = promptDigest(head.System, head.User)
	for _, x := range t.Context.Withheld {
		head.Withheld = append(head.Withheld, fmt.Sprintf("comment %d by @%s: %s", x.ID, x.By.Login, x.Reason))
	}
	if err := s.Files.BeginTranscript(t.Run.ID, head); err != nil {
		return runner.Spec{}, err
	}
	spec := runSpec(t, ws.Place.Dir, cmd)
	if l.IsRepair {
		short(&spec)
	}
	if adapter.Capabilities().MCP {
		spec.Files = append(spec.Files, runner.File{Path: tokenFile(runDir), Mode: 0o600, Content: []byte(ws.RunToken())})
	}
	spec.Env = ws.AgentEnv(spec.Env)
	return spec, nil
}

// runSpec returns the command as the runner starts it, within the task's limits.
func runSpec(t *state.Task, dir string, cmd agent.Cmd) runner.Spec {
	spec := runner.Spec{
		ID: t.Run.ID, Argv: cmd.Argv, Env: cmd.Env, Dir: dir, Stdin: string(cmd.Stdin),
		Duration: max(t.Settings.Limits.Duration-t.Active, time.Minute), Stall: t.Settings.Limits.Stall,
	}
	if t.Run.Kind == state.RunPreliminary || t.Run.Kind == state.RunPlan {
		spec.Duration = min(spec.Duration, t.Settings.Limits.PlanDuration)
	}
	for _, f := range cmd.Files {
		spec.Files = append(spec.Files, runner.File{Path: f.Path, Mode: uint32(f.Mode.Perm()), Content: f.Content})
	}
	for _, c := range t.Settings.Setup {
		spec.Setup = append(spec.Setup, runner.SetupCommand{Command: c.Run, Timeout: c.Timeout})
	}
	return spec
}

// holdsSession reports whether the agent's session is on this VM: the last run that had one was there, or on
// a VM whose work was brought here.
func holdsSession(t *state.Task, vm state.VM) bool {
	for i := len(t.Runs) - 1; i >= 0; i-- {
		if t.Runs[i].Session != "" {
			return vm.Contains(t.Runs[i].VM)
		}
	}
	return false
}

// promptDigest returns the SHA-256, in hexadecimal digits, of a prompt: the length of its first part in decimal digits, a line end, and
// both parts.
func promptDigest(system, user string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d\n%s%s", len(system), system, user))
	return hex.EncodeToString(sum[:])
}

func taskName(t *state.Task) string { return fmt.Sprintf("%s#%d", t.Repo.FullName(), t.Key.Issue) }

// tokenFile returns the path of a run's token for the server of errand's tools. The token must not be an argument,
// which other users of the VM could read.
func tokenFile(runDir string) string { return path.Join(runDir, "callback.token") }

// toolServer is the MCP configuration by which an agent reaches errand's tools, nil for one that has no MCP.
func toolServer(a agent.Adapter, place runnerctl.Place, runDir string) json.RawMessage {
	if !a.Capabilities().MCP {
		return nil
	}
	type server struct {
		Command string   `json:"command"`
		Args    []string `json:"args"`
	}
	raw, _ := json.Marshal(map[string]any{"mcpServers": map[string]server{ // strings always encode
		tools.Server: {Command: place.Runner, Args: []string{"mcp", "--url", place.BaseURL, "--token-file", tokenFile(runDir)}},
	}})
	return raw
}

// maxUSD returns the budget that is passed to the agent, 0 for none: a subscription has no cost per call.
func (s *Steps) maxUSD(t *state.Task, adapter string) float64 {
	if s.Subscribed[s.Providers[adapter]] {
		return 0
	}
	return usd(max(t.Money.CapMicroUSD-t.Money.MicroUSD, 0))
}

// usd is an amount of money in dollars.
func usd(micro int64) float64 { return float64(micro) / 1e6 }
