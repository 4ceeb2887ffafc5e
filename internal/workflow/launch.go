package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/internal/runner"
	"github.com/errand-bot/errand/internal/runner/work"
	"github.com/errand-bot/errand/internal/runnerctl"
	"github.com/errand-bot/errand/state"
)

// ErrNoVM says that no VM can be had now; the task waits. Its message says why.
var ErrNoVM = errors.New("no VM can be had now")

// ErrNoSnapshot says that the snapshot which a VM was to be made from is gone for good.
var ErrNoSnapshot = errors.New("the snapshot is gone")

// launch brings up the VM and the checkout, writes the prompt and starts the run. Each part looks
// for what an earlier attempt did; a run that was started is left alone.
func (s *Steps) launch(ctx context.Context, w *unit) (state.Event, error) {
	t := w.task
	if t.Run == nil || t.Run.ID != w.job.Run || t.Run.State != state.RunLaunching {
		return done(), nil // the task turned away
	}
	if at, err := s.underWay(ctx, w); at != nil || err != nil {
		return state.Event{Kind: state.EventLaunched, Run: t.Run.ID, Launch: at}, err
	}
	if starts(t) {
		why, err := s.stillApproved(ctx, w, t.Approval)
		if err != nil {
			return state.Event{}, fmt.Errorf("check the approval before the start: %w", err)
		}
		if why != "" {
			return state.Event{Kind: state.EventNoApproval, Detail: why, Run: t.Run.ID, Candidate: &state.Candidate{Approval: *t.Approval}}, nil
		}
	}
	if held, err := s.permitted(ctx, w); held != nil || err != nil {
		return heldUp(held), err
	}
	if held, err := s.withinCaps(ctx, t); held != nil || err != nil {
		return heldUp(held), err
	}
	l := &state.Launch{Run: t.Run.ID}
	place, held, err := s.reach(ctx, t, l)
	if held != nil || err != nil {
		return heldUp(held), err
	}
	return s.launchOn(ctx, w, l, place)
}

// underWay returns what the run was started with if an earlier attempt did start it, else nil. From
// then on the checkout is the agent's: it must not be put anywhere, and neither a newer base nor
// what people said since is what the agent knows of.
func (s *Steps) underWay(ctx context.Context, w *unit) (*state.Launch, error) {
	at := w.job.Launch
	if at == nil || at.Run != w.task.Run.ID {
		return nil, nil
	}
	known, err := s.Runner.Knows(ctx, at.VM.Name, at.Run)
	if err != nil {
		return nil, fmt.Errorf("ask VM %s for run %s: %w", at.VM.Name, at.Run, err)
	}
	if !known {
		return nil, nil
	}
	return at, nil
}

// starts reports whether this run is the first one that an approval allows: until then the approval
// can be taken back.
func starts(t *state.Task) bool {
	if t.Approval == nil || t.Run.Kind != state.RunPlan && t.Run.Kind != state.RunImplement {
		return false
	}
	for _, r := range t.Runs {
		if r.Kind == t.Run.Kind && !r.Started.IsZero() && r.Plan == t.Approval.Hash {
			return false
		}
	}
	return true
}

// launchOn starts the run on a VM that is there and reachable.
func (s *Steps) launchOn(ctx context.Context, w *unit, l *state.Launch, place runnerctl.Place) (state.Event, error) {
	t, vm := w.task, l.VM.Name
	l.Started = s.Now() // getting the VM may have taken long
	if err := s.quiet(ctx, t, vm); err != nil {
		return state.Event{}, err
	}
	if err := s.wake(ctx, w, l, place); err != nil {
		return state.Event{}, err
	}
	var spec runner.Spec
	var err error
	if t.Run.Kind == state.RunCheck {
		spec, err = s.checkSpec(t, place, l)
	} else {
		spec, err = s.agentSpec(ctx, w, l.VM, place, l)
	}
	if err != nil {
		return state.Event{}, err
	}
	if err := s.Store.MarkLaunch(ctx, w.job.ID, w.job.Epoch, *l); err != nil {
		return state.Event{}, err
	}
	if err := s.Runner.Start(ctx, vm, spec); err != nil {
		return state.Event{}, fmt.Errorf("start run %s: %w", t.Run.ID, err)
	}
	return state.Event{Kind: state.EventLaunched, Run: t.Run.ID, Launch: l}, nil
}

// source is where a VM fetches the task's repository from: its own end of the tether.
func (s *Steps) source(t *state.Task, vm string, place runnerctl.Place, branch string) work.Source {
	return work.Source{
		URL:   fmt.Sprintf("%s/git/%s/%s", place.BaseURL, t.Repo.Owner, t.Repo.Name),
		Token: s.Tether.VMToken(vm), Ref: "refs/heads/" + branch,
	}
}

// checkout puts the VM's checkout where the run has to begin. Work of an earlier attempt that is not
// published yet is kept; anything else begins at the published head, or at the base's newest commit. Whether it
// has large files is noted in the place.
func (s *Steps) checkout(ctx context.Context, w *unit, vm state.VM, place *runnerctl.Place, l *state.Launch) error {
	t := w.task
	from, commit := t.Branch.Name, t.Branch.Head
	if commit == "" {
		from = t.Branch.Base
		head, err := s.baseHead(ctx, w)
		if err != nil {
			return fmt.Errorf("find the base's newest commit: %w", err)
		}
		commit = head
		if goesOn(t, vm) {
			commit = t.Branch.BaseSHA // the work under way began there
		}
		l.BaseSHA = commit
	}
	src := s.source(t, vm.Name, *place, from)
	if t.VM != nil && t.VM.Name == vm.Name && t.Branch.VMHead == commit {
		src.Ref = "" // it is there already: nothing is fetched
	}
	spec, err := s.prepareSpec(ctx, t, *place, src, commit)
	if err != nil {
		return err
	}
	at, err := s.Runner.Prepare(ctx, vm.Name, spec)
	if err != nil {
		return s.branchGone(ctx, w, fmt.Errorf("prepare the checkout: %w", err))
	}
	l.VMHead, place.LargeFiles = at.Head, at.LargeFiles
	if goesOn(t, vm) && !at.Created {
		l.VMHead = workRoot(t) // at.Head is the agent's own, which nobody else has
		return nil             // what the work under way began at stays
	}
	l.Root = commit
	if at.Created {
		return nil
	}
	l.VMHead = commit
	// What a planning run left lying about must not reach the changeset.
	src.Ref = "" // as above
	err = s.Runner.Reset(ctx, vm.Name, work.ResetSpec{Dir: place.Dir, Source: src, Branch: t.Branch.Name, Head: commit, Clean: true})
	if err != nil {
		return fmt.Errorf("put the checkout on %s: %w", commit, err)
	}
	return nil
}

// goesOn reports whether the VM holds unpublished work that this run continues: an earlier run of
// the same kind and round was on it, and nothing of it was published. What was built before people asked
// for a new plan is not continued.
func goesOn(t *state.Task, vm state.VM) bool {
	if t.Run.Kind != state.RunImplement && t.Run.Kind != state.RunReview {
		return false
	}
	for i := len(t.Runs) - 1; i >= 0; i-- {
		r := t.Runs[i]
		if r.Kind == t.Run.Kind && r.Round == t.Run.Round && !r.Started.IsZero() {
			return vm.Holds(r.VM) && !r.Started.Before(t.PlanningBegan())
		}
	}
	return false
}

// agentSpec is how the run's agent is started.
func (s *Steps) agentSpec(ctx context.Context, w *unit, vm state.VM, place runnerctl.Place, l *state.Launch) (runner.Spec, error) {
	t := w.task
	if l.Repairs = repairs(t, vm); !l.Repairs {
		if err := s.checkout(ctx, w, vm, &place, l); err != nil {
			return runner.Spec{}, err
		}
		if err := s.lend(ctx, t, vm.Name, place, l); err != nil {
			return runner.Spec{}, err
		}
	}
	adapter, route := s.choose(t)
	resume := resumable(t, vm, adapter)
	l.Adapter, l.Model, l.Resumed = route.Adapter, route.Model, resume != ""
	prompt, err := s.prompt(ctx, w, resume == "", l, place)
	if err != nil {
		return runner.Spec{}, fmt.Errorf("write the prompt: %w", err)
	}
	turns := turnsOf(t, l)
	l.TurnLimit, l.MaxTurns = turns, hardTurns(adapter.Capabilities(), turns)
	session := "" // a resumed session keeps its id
	if resume == "" {
		session = uuid.NewSHA1(uuid.NameSpaceURL, []byte("errand:"+t.Run.ID)).String()
	}
	runDir := path.Join(place.Home, ".errand", "runs", t.Run.ID)
	var form json.RawMessage
	if l.Repairs {
		form = held(adapter.Capabilities(), t.Run.Kind)
	}
	cmd, err := adapter.Command(agent.Spec{
		WorkDir: place.Dir, Home: place.Home, RunDir: runDir, Step: string(t.Run.Kind), Model: l.Model,
		Prompt: prompt.User, System: prompt.System, Resume: resume, Session: session, Shell: callable(t.Settings), Deny: s.denied(t.Settings),
		MaxTurns: turns, MaxUSD: s.maxUSD(t, l.Adapter), BaseURL: s.modelURL(place.BaseURL, l.Adapter), RunToken: s.Tether.RunToken(t.Run.ID),
		MCP: toolServer(adapter, place, runDir), Schema: form,
	})
	if err != nil {
		return runner.Spec{}, &Problem{Reason: "The agent cannot be started with this prompt.", Hint: err.Error(), Class: "agent", Permanent: true, Err: err}
	}
	head := runlog.Header{Run: t.Run.ID, Task: taskName(t), Step: string(t.Run.Kind), Agent: l.Adapter, Model: l.Model, Started: l.Started}
	head.System, _ = s.Redact.Redact(prompt.System)
	head.User, _ = s.Redact.Redact(prompt.User)
	for _, x := range t.Context.Withheld {
		head.Withheld = append(head.Withheld, fmt.Sprintf("comment %d by @%s: %s", x.ID, x.By.Login, x.Reason))
	}
	if err := s.Files.BeginTranscript(t.Run.ID, head); err != nil {
		return runner.Spec{}, err
	}
	spec := s.runSpec(t, place, cmd)
	if l.Repairs {
		short(&spec)
	}
	if adapter.Capabilities().MCP {
		spec.Files = append(spec.Files, runner.File{Path: tokenFile(runDir), Mode: 0o600, Content: []byte(s.Tether.RunToken(t.Run.ID))})
	}
	spec.Env = proxied(s.withGit(t, s.withVariables(t, spec.Env), place.BaseURL), vm.Kind, place.BaseURL, s.Tether.RunToken(t.Run.ID))
	return spec, nil
}

// holdsSession reports whether the agent's session is on this VM: the last run that had one was there, or on
// a VM whose work was brought here.
func holdsSession(t *state.Task, vm state.VM) bool {
	for i := len(t.Runs) - 1; i >= 0; i-- {
		if t.Runs[i].Session != "" {
			return vm.Holds(t.Runs[i].VM)
		}
	}
	return false
}

// runSpec is the command as the runner starts it, within the task's limits.
func (s *Steps) runSpec(t *state.Task, place runnerctl.Place, cmd agent.Cmd) runner.Spec {
	spec := runner.Spec{
		ID: t.Run.ID, Argv: cmd.Argv, Env: cmd.Env, Dir: place.Dir, Stdin: string(cmd.Stdin),
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

// checkSpec is how the repository's own commands are run on the changeset's head, detached like an
// agent's run.
func (s *Steps) checkSpec(t *state.Task, place runnerctl.Place, l *state.Launch) (runner.Spec, error) {
	if l.NotWoken != "" {
		return runner.Spec{}, &Problem{Reason: "The work to be checked is lost: " + l.NotWoken + ".", Hint: "Comment `retry` to do the work again.", Class: state.ClassVM, Permanent: true}
	}
	// The operator's environment for agents, such as a build cache, serves the checks as well.
	in := work.CheckSpec{Dir: place.Dir, Head: t.Work.LocalHead, Base: workBase(t), Files: s.files(t), Env: proxied(s.withVariables(t, s.Agent.Env), l.VM.Kind, place.BaseURL, s.Tether.RunToken(t.Run.ID))}
	limit := time.Minute
	for _, c := range t.Settings.Check {
		in.Commands = append(in.Commands, work.CheckCommand{Name: nameOf(c), Command: c.Run, Timeout: c.Timeout})
		limit += max(c.Timeout, 10*time.Minute)
	}
	stdin, err := jsonOf(in)
	if err != nil {
		return runner.Spec{}, err
	}
	head := runlog.Header{Run: t.Run.ID, Task: taskName(t), Step: string(t.Run.Kind), Started: s.Now()}
	if err := s.Files.BeginTranscript(t.Run.ID, head); err != nil {
		return runner.Spec{}, err
	}
	return runner.Spec{ID: t.Run.ID, Argv: []string{"{runner}", "check"}, Dir: place.Dir, Stdin: stdin, Duration: limit, Isolation: "subreaper"}, nil
}

func nameOf(c state.Command) string {
	if c.Name != "" {
		return c.Name
	}
	return c.Run
}

func taskName(t *state.Task) string { return fmt.Sprintf("%s#%d", t.Repo.FullName(), t.Key.Issue) }

// drift is how the files that the plan names changed since it was made.
func (s *Steps) drift(ctx context.Context, w *unit, plan *state.Plan, head string) ([]forge.ChangedFile, error) {
	if plan == nil || plan.BaseSHA == "" || head == "" || plan.BaseSHA == head || len(plan.Files) == 0 {
		return nil, nil
	}
	cmp, err := s.GitHub.ChangedSince(ctx, w.repo, plan.BaseSHA, head)
	if err != nil {
		return nil, fmt.Errorf("compare the base with the plan's: %w", err)
	}
	var out []forge.ChangedFile
	for _, f := range cmp.Files {
		for _, named := range plan.Files {
			if f.Path == named || f.OldPath == named || strings.HasPrefix(f.Path, strings.TrimSuffix(named, "/")+"/") {
				out = append(out, f)
				break
			}
		}
	}
	return out, nil
}
