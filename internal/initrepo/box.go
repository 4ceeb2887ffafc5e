package initrepo

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/errand-bot/errand/internal/egress"
	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/internal/runner"
	"github.com/errand-bot/errand/internal/runner/work"
	"github.com/errand-bot/errand/internal/runnerctl"
	"github.com/errand-bot/errand/internal/scan"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/internal/workflow/workspace"
	"github.com/errand-bot/errand/state"
)

// Limits on trying commands.
const (
	commandTime = 10 * time.Minute // of one command, the default of `.errand.yml`
	trialTime   = 30 * time.Minute // of all
	endTime     = time.Minute      // for the deletion of the sandbox
)

// Exit codes of a shell for a program that it may not execute, or does not find.
const (
	notAllowed = 126
	notFound   = 127
)

// lacking matches what shells and make say about a program that they do not find.
var lacking = regexp.MustCompile(`(?m)([A-Za-z0-9_./+-]+): (?:command )?not found\r?$|^make(?:\[\d+\])?: ([A-Za-z0-9_./+-]+): No such file or directory\r?$`)

// Outputs are cut to their ends.
const (
	keptLines = 40
	keptBytes = 8 << 10
)

// vmOwner names the sandbox.
const vmOwner = "init"

// Fleet creates and deletes the sandbox; *fleet.Fleet is one.
type Fleet interface {
	Describe(ctx context.Context) (fleet.Description, error)
	Acquire(ctx context.Context, spec fleet.AcquireSpec) (fleet.VM, error)
	Release(ctx context.Context, name string, why fleet.Reason) error
}

// Runner runs commands in the sandbox; *runnerctl.Controller is one.
type Runner interface {
	workspace.Runner
	Start(ctx context.Context, vm string, spec runner.Spec) error
	Follow(ctx context.Context, vm, run string, from int64) (*runnerctl.Followed, error)
}

// A Box is where commands are tried: a sandbox like those of agents, with the same variables, files and reachable hosts, but
// without a model.
type Box struct {
	Fleet  Fleet
	Runner Runner
	// Open returns the workspaces of a task, whose tether is served until close is called. Requests for other hosts are passed to done.
	Open func(t *state.Task, done func(r egress.Request)) (o *workspace.Opener, close func())
	// Env is the operator's environment for agents, which checks get as well.
	Env map[string]string
	// Elsewhere reports that agents do not work on this host, so that a program which is missing here may exist there.
	Elsewhere bool
	Redact    func(text string) string
	// Warn tells the operator about a sandbox that could not be deleted.
	Warn func(err error)
}

// ErrNoBox means that this host cannot run commands of a repository safely.
var ErrNoBox = errors.New("this host has no sandbox that separates commands from it")

// Try runs the commands of a report on its commit, first those of setup, then those of check, and stores their outcomes. It calls
// began before each command. Without a sandbox that isolates, it runs nothing and returns ErrNoBox. After any error, no command has an
// outcome.
func (b *Box) Try(ctx context.Context, t Target, r *scan.Report, began func(list string, c scan.Command)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, trialTime, fmt.Errorf("trying the commands took longer than %s", trialTime))
	defer cancel()
	d, err := b.Fleet.Describe(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoBox, err)
	}
	if d.Isolation == fleet.IsolationNone {
		return fmt.Errorf("%w: %s", ErrNoBox, strings.Join(d.Notes, "; "))
	}
	vm, err := b.Fleet.Acquire(ctx, fleet.AcquireSpec{Owner: vmOwner})
	if err != nil {
		return fmt.Errorf("create a sandbox: %w", err)
	}
	defer func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
		defer cancel()
		if err := b.Fleet.Release(ending, vm.Name, fleet.ReasonDone); err != nil {
			b.Warn(fmt.Errorf("delete the sandbox: %w", err))
		}
	}()
	if err := b.tryIn(ctx, vm, t, r, began); err != nil {
		forget(r)
		return err
	}
	return nil
}

// forget deletes all outcomes, because some could not be had: a file says either that its commands were tried or that they were not.
func forget(r *scan.Report) {
	for _, list := range [][]scan.Command{r.Setup, r.Check} {
		for i := range list {
			list[i].Outcome = nil
		}
	}
}

// tryIn runs the commands in a sandbox.
func (b *Box) tryIn(ctx context.Context, vm fleet.VM, t Target, r *scan.Report, began func(list string, c scan.Command)) (err error) {
	tr := &trial{Box: b, report: r, began: began, vm: vm.Name, task: taskOf(t, vm)}
	opener, end := b.Open(tr.task, tr.requested)
	defer end()
	if err := opener.Tether.Ensure(ctx, vm.Name, tr.task.Key); err != nil {
		return fmt.Errorf("connect to the sandbox: %w", err)
	}
	if tr.ws, err = opener.Open(ctx, tr.task); err != nil {
		return err
	}
	if err := tr.ws.TrustRegistries(ctx); err != nil {
		return err
	}
	if _, err := tr.ws.Prepare(ctx, &step.Attempt{Task: tr.task}, tr.ws.Source(t.DefaultBranch), t.Commit); err != nil {
		return err
	}
	if err := tr.ws.AddTestFiles(ctx, &state.Launch{}); err != nil {
		return err
	}
	if err := tr.setup(ctx); err != nil {
		return err
	}
	if err := tr.check(ctx, opener, "check", r.Check); err != nil {
		return err
	}
	return tr.checkInstead(ctx, opener)
}

// taskOf returns the task as which the sandbox is known at the tether. Its run is one of checks, which may not call models.
func taskOf(t Target, vm fleet.VM) *state.Task {
	task := &state.Task{Key: state.TaskKey{Repo: t.ID}}
	task.Installation = t.Installation
	task.Repo = state.Repo{ID: t.ID, Owner: t.Owner, Name: t.Name, DefaultBranch: t.DefaultBranch, Private: t.Private, URL: t.URL}
	task.VM = &state.VM{Name: vm.Name, Kind: vm.Kind}
	task.Branch = state.Branch{Name: DefaultBranch, Base: t.DefaultBranch, BaseSHA: t.Commit}
	task.Run = &state.Run{ID: vmOwner, Kind: state.RunCheck, State: state.RunActive}
	task.Run.VM = vm.Name
	return task
}

// A trial tries the commands of one report.
type trial struct {
	*Box
	report *scan.Report
	began  func(list string, c scan.Command)
	vm     string
	task   *state.Task
	ws     *workspace.Workspace

	mu     sync.Mutex
	denied []egress.Request // refused ones that no command has been blamed for yet
}

// maxDenied is the number of refused requests that are kept.
const maxDenied = 200

// requested takes a request for another host.
func (t *trial) requested(r egress.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !r.Allowed && r.Host != "" && len(t.denied) < maxDenied {
		t.denied = append(t.denied, r)
	}
}

// refusals returns why requests were refused until a time, since the last call. The sandbox has the same clock as errand. Results can
// arrive late, when the next command is at work.
func (t *trial) refusals(until time.Time) (reasons []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	later := t.denied[:0:0]
	for _, r := range t.denied {
		switch reason := scan.Clean(r.Reason); {
		case r.At.After(until):
			later = append(later, r)
		case !slices.Contains(reasons, reason) && len(reasons) < maxRefusals:
			reasons = append(reasons, reason)
		}
	}
	t.denied = later
	return reasons
}

// maxRefusals is the number of refusals that an outcome names.
const maxRefusals = 3

// setup runs the commands of setup in the checkout, each as a run of its own.
func (t *trial) setup(ctx context.Context) error {
	for i := range t.report.Setup {
		c := &t.report.Setup[i]
		if !t.begin(ctx, "setup", c) {
			continue
		}
		run := fmt.Sprintf("setup-%d", i+1)
		out := &output{}
		exit, err := t.run(ctx, runner.Spec{
			ID: run, Argv: []string{"/bin/sh", "-c", c.Run}, Dir: t.ws.Place.Dir, Env: t.ws.AgentEnv(t.Env), Duration: commandTime, Stall: -1,
		}, out.add)
		if err != nil {
			if err := interrupted(ctx, err); err != nil {
				return err
			}
			c.Outcome = &scan.Outcome{Status: scan.Untried, Reason: "the time for trying commands was over"}
			continue
		}
		c.Outcome = t.outcome(*c, ended{code: exit.Code, late: exit.Cause == runlog.CauseDuration, at: exit.EndedAt,
			took: exit.EndedAt.Sub(exit.StartedAt), tail: out.text()})
	}
	return nil
}

// begin reports whether there is time to try a command.
func (t *trial) begin(ctx context.Context, list string, c *scan.Command) bool {
	if ctx.Err() != nil {
		c.Outcome = &scan.Outcome{Status: scan.Untried, Reason: "the time for trying commands was over"}
		return false
	}
	t.began(list, *c)
	return true
}

// interrupted returns the error unless the time for trying is over.
func interrupted(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil
	}
	return err
}

// check runs commands of check as errand does: in a checkout and a home of their own.
func (t *trial) check(ctx context.Context, opener *workspace.Opener, run string, list []scan.Command) error {
	if len(list) == 0 {
		return nil
	}
	in := work.CheckSpec{Dir: t.ws.Place.Dir, Head: t.task.Branch.BaseSHA, Files: opener.TestFiles(t.task), Env: t.ws.CheckEnv(t.Env)}
	for _, c := range list {
		in.Commands = append(in.Commands, work.CheckCommand{Name: c.Run, Command: c.OnTrial(), Timeout: commandTime})
	}
	stdin, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("encode the checks: %w", err)
	}
	next, failure := 0, ""
	if t.begin(ctx, "check", &list[0]) {
		_, err = t.run(ctx, runner.Spec{
			ID: run, Argv: []string{"{runner}", "check"}, Dir: t.ws.Place.Dir, Stdin: string(stdin), Duration: trialTime, Stall: -1, Isolation: "subreaper",
		}, func(l runlog.Line) {
			var got struct {
				work.CheckResult
				Error string `json:"error"`
			}
			if l.Stream != runlog.StreamStdout || json.Unmarshal([]byte(l.Text), &got) != nil {
				return
			}
			switch {
			case got.Type == work.TypeChecksDone:
				failure = got.Error
			case got.Type == work.TypeCheckResult && next < len(list):
				list[next].Outcome = t.outcome(list[next], ended{code: got.Code, late: got.TimedOut, at: l.Time, took: got.Duration,
					tail: got.Tail})
				if next++; next < len(list) {
					t.begin(ctx, "check", &list[next])
				}
			}
		})
	}
	if err != nil {
		if err := interrupted(ctx, err); err != nil {
			return err
		}
		failure = "the time for trying commands was over"
	}
	for i := next; i < len(list); i++ {
		if failure == "" {
			failure = "the checks ended early"
		}
		list[i].Outcome = &scan.Outcome{Status: scan.Untried, Reason: scan.Clean(failure)}
	}
	return nil
}

// ended is the end of a command.
type ended struct {
	code int
	late bool
	at   time.Time
	took time.Duration
	tail string
}

// outcome judges the end of a command.
func (t *trial) outcome(c scan.Command, e ended) *scan.Outcome {
	o := &scan.Outcome{Status: scan.Succeeded, Seconds: e.took.Round(100 * time.Millisecond).Seconds()}
	refused := t.refusals(e.at)
	if e.code == 0 && !e.late {
		return o
	}
	o.Status, o.Output = scan.Failed, t.Redact(e.tail)
	says := func(code int, words ...string) bool {
		return e.code == code && slices.ContainsFunc(words, func(w string) bool { return strings.Contains(e.tail, " "+c.Tool+": "+w) })
	}
	missing := says(notFound, "not found", "command not found")
	switch program := lacking.FindStringSubmatch(e.tail); {
	case e.late:
		o.Reason = fmt.Sprintf("it took longer than %s; if that is usual, write it as {run: …, timeout: 30m}", commandTime)
	case program != nil && t.Elsewhere:
		o.Status, o.Reason = scan.Untried, scan.Clean(cmp.Or(program[1:]...))+" was not found in the sandbox on errand's host; agents work on other VMs"
	case missing:
		o.Reason = c.Tool + " was not found in the sandbox; agents work in such ones, too: install it on errand's host, or add its folder to local.path"
	case says(notAllowed, "Permission denied"):
		o.Reason = c.Tool + " may not be executed in the sandbox: check its permissions"
	case program != nil:
		o.Reason = fmt.Sprintf("exit code %d: %s was not found in the sandbox", e.code, scan.Clean(cmp.Or(program[1:]...)))
	default:
		o.Reason = fmt.Sprintf("exit code %d", e.code)
	}
	if len(refused) > 0 {
		o.Reason += "; requests were refused: " + strings.Join(refused, "; ")
	}
	return o
}

// run starts a run, passes its lines on, and returns its end. If ctx ends, the run is stopped with the sandbox.
func (t *trial) run(ctx context.Context, spec runner.Spec, line func(runlog.Line)) (runlog.Exit, error) {
	if err := t.Runner.Start(ctx, t.vm, spec); err != nil {
		return runlog.Exit{}, fmt.Errorf("start a command in the sandbox: %w", err)
	}
	followed, err := t.Runner.Follow(ctx, t.vm, spec.ID, 0)
	if err != nil {
		return runlog.Exit{}, err
	}
	defer func() { _ = followed.Close() }()
	for {
		record, err := followed.Next()
		switch {
		case errors.Is(err, io.EOF), err != nil:
			return runlog.Exit{}, fmt.Errorf("follow a command in the sandbox: %w", errors.Join(err, context.Cause(ctx)))
		case record.Line != nil:
			line(*record.Line)
		case record.Exit != nil:
			return *record.Exit, nil
		}
	}
}

// output keeps the end of a command's output.
type output struct{ lines []string }

func (o *output) add(l runlog.Line) {
	text := l.Text[max(0, len(l.Text)-keptBytes/8):]
	o.lines = append(o.lines, strings.ToValidUTF8(text, "?"))
	o.lines = o.lines[max(0, len(o.lines)-keptLines):]
}

func (o *output) text() string { return strings.Join(o.lines, "\n") }
