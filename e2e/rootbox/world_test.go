//go:build linux

package rootbox_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/e2e/rootbox"
	"github.com/errand-bot/errand/e2e/stage"
	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/internal/rsatest"
	"github.com/errand-bot/errand/internal/server"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/sim/simhetzner"
	"github.com/errand-bot/errand/state"
)

// configYAML shortens errand's timing. Agents may run all commands, because they do unusual things.
const configYAML = `repository: {tools: {shell: all}}
timing:
  gather: 400ms
  poll_fast: 1s
  poll_slow: 1s
  deliveries: 5s
  sweep: 1h
  idle_vm: 1h
`

// timing is short, except for the timeouts that the faults test.
func timing() *server.Timing {
	t := server.DefaultTiming()
	t.StatusGap, t.Settle, t.SleepBefore = 300*time.Millisecond, 0, time.Minute
	t.Backoff, t.Recheck, t.JobRetry, t.ProgressEvery = 500*time.Millisecond, 500*time.Millisecond, 300*time.Millisecond, 300*time.Millisecond
	t.PollGap, t.VMTick, t.VMQueue = 150*time.Millisecond, 200*time.Millisecond, 100*time.Millisecond
	t.WritesBurst, t.WritesEvery, t.ObjectsEvery = 200, 5*time.Millisecond, time.Millisecond
	return &t
}

// script is the model's script: one change, with a gate in the middle at which faults occur. %s is the agent's command
// after the gate. The change is idempotent, because a killed agent's command may commit before it is ended.
const script = `rules:
  - name: gated
    step: implement
    turns:
      - bash: ["echo half > half.txt && git add half.txt"]
      - wait: work
        bash: ["rm -f half.txt; git add -A; DO; printf 'hello\\nworld\\n' > greeting.txt; git commit -qam world; git rev-parse HEAD"]
      - text: |
          Done.

          ` + "```errand" + `
          {"outcome":"done","title":"Greet the world","summary":"Added."}
          ` + "```" + `
`

// ready builds the common files of all worlds, once.
var ready = sync.OnceValues(func() (stage.Shared, error) {
	dir, err := os.MkdirTemp("", "errand-rootbox-")
	if err != nil {
		return stage.Shared{}, err
	}
	s := stage.Prepare(dir)
	if s.Err == nil { // a VM on another kind of machine is requested by its kind
		s.Err = os.Link(filepath.Join(dir, "errand-runner"), filepath.Join(dir, "errand-runner-linux-amd64"))
	}
	return s, s.Err
})

// life is one issue in a world whose VMs are root boxes.
type life struct {
	t        *testing.T
	world    *demo.World
	machines *rootbox.Machines
	log      string
	issue    int
}

// begin starts a world and plays the issue up to the gate in the middle of the change.
func begin(t *testing.T, unreachableFor time.Duration, do string, changes ...func(*demo.Config)) *life {
	t.Helper()
	lab := openLab(t)
	shared, err := ready()
	must(t, err)
	exe, err := os.Executable()
	must(t, err)
	dir := t.TempDir()
	l := &life{t: t, machines: &rootbox.Machines{Lab: lab, Binds: []string{exe}}, log: filepath.Join(dir, "errand.log")}
	log, err := os.Create(l.log)
	must(t, err)
	cfg := demo.Config{
		Dir: dir, BinDir: shared.Bin, Agent: []string{exe, "simagent"}, StandIn: true, Key: rsatest.Key(), Version: "test",
		Log: zerolog.New(log).With().Timestamp().Logger(), Extra: configYAML, Timing: timing(), Script: strings.Replace(script, "DO", do, 1),
		Files:    map[string]string{"README.md": "# greeting\n", "greeting.txt": "hello\n", ".errand.yml": "plan: none\n"},
		Provider: demo.ProviderHetzner, Machines: l.machines,
		Account: func(c *simhetzner.Config) {
			c.IPv4, c.Period, c.Took = lab.Ordered(), time.Hour, simhetzner.Scaled(60)
		},
	}
	cfg.Timing.UnreachableFor = unreachableFor
	for _, change := range changes {
		change(&cfg)
	}
	l.world, err = demo.New(t.Context(), cfg)
	must(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			l.logState()
		}
		if err := errors.Join(l.world.Close(), log.Close()); err != nil {
			t.Error(err)
		}
	})
	i, err := l.ada().OpenIssue(demo.Full, simgithub.NewIssue{Title: "Greet the world", Body: "The greeting is incomplete."})
	must(t, err)
	l.issue = i.Number
	must(t, l.ada().Assign(demo.Full, l.issue, demo.Machine))
	if err := l.world.Model.Waiting(within(t), "work"); err != nil {
		t.Fatalf("the agent does not reach the gate: %v", err)
	}
	return l
}

func (l *life) ada() simgithub.Person { return l.world.GitHub.As(demo.Maintainer) }

func (l *life) task() *state.Task {
	l.t.Helper()
	sn := l.world.GitHub.Snapshot()
	r, ok := sn.Repo(demo.Full)
	if !ok {
		l.t.Fatal("the repository is gone")
	}
	t, err := l.world.Server.Store().Task(context.WithoutCancel(l.t.Context()), state.TaskKey{Repo: r.ID, Issue: l.issue})
	if err != nil || t == nil {
		l.t.Fatalf("read the task: %v", err)
	}
	return t
}

// box returns the box of the task's current VM.
func (l *life) box() *rootbox.Box {
	l.t.Helper()
	t := l.task()
	if t.VM == nil || l.machines.Box(t.VM.Name) == nil {
		l.t.Fatalf("the task has no VM: %+v", t.VM)
	}
	return l.machines.Box(t.VM.Name)
}

// comments returns errand's comments on the issue in order.
func (l *life) comments() string {
	i, err := l.ada().Issue(demo.Full, l.issue)
	if err != nil {
		return err.Error()
	}
	var all []string
	for _, c := range i.Comments {
		if c.Author == l.world.GitHub.App().BotLogin {
			all = append(all, c.Body)
		}
	}
	return strings.Join(all, "\n====\n")
}

// logged reports whether errand has logged a message.
func (l *life) logged(what string) bool {
	data, err := os.ReadFile(l.log)
	return err == nil && strings.Contains(string(data), what)
}

// logState logs the state of the task.
func (l *life) logState() {
	t := l.task()
	for _, h := range t.History {
		l.t.Logf("history: %+v", h)
	}
	for _, r := range t.Runs {
		l.t.Logf("run: %+v", r)
	}
	l.t.Logf("phase %s, waiting %+v, VM %+v, VMs %+v, end %+v", t.Phase, t.Waiting, t.VM, t.VMs, t.End)
	l.t.Logf("comments:\n%s", l.comments())
	data, _ := os.ReadFile(l.log)
	l.t.Logf("log:\n%s", data[max(0, len(data)-20000):])
}
