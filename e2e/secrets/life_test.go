//go:build linux

package secrets_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/crypto/ssh"

	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/internal/fleet/local/box"
	"github.com/errand-bot/errand/internal/rsatest"
	"github.com/errand-bot/errand/internal/runner/pack"
	"github.com/errand-bot/errand/internal/server"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/sim/simhetzner"
	"github.com/errand-bot/errand/internal/workflow"
	"github.com/errand-bot/errand/state"
)

// patience is the timeout of one step on a slow and busy machine.
const patience = 5 * time.Minute

// operator is the additional configuration of errand, with a short timing.
const operator = `repository: {tools: {shell: all}}
timing: {gather: 250ms, poll_fast: 150ms, poll_slow: 300ms, deliveries: 1h, sweep: 1h, shutdown: 5s, idle_vm: 300ms}
test_env: {"acme/*": {LENT_WORD: "value:VARIABLE"}}
test_files: {"acme/*": {lent.key: "value:FILE"}}
`

// settings make set-up and checks on the VM print the variables and files for tests.
const settings = `plan: none
setup: ['echo "seen-$((42*42))-beside-it-$LENT_WORD"; cat lent.key']
check: ['test -n "$LENT_WORD" && echo "seen-$((42*42))-beside-it-$LENT_WORD" && cat lent.key']
`

// script makes the agent write the canary everywhere, then search, then do its work. BIRD and LOOK are replaced.
const script = `rules:
  - name: work
    step: implement
    turns:
      - bash:
          - export KEPT=BIRD; echo $KEPT > ~/kept; (setsid sleep 600 >/dev/null 2>&1 &); git ls-remote https://BIRD.example/x.git 2>&1 | tail -1
      - wait: look
        bash: ["LOOK"]
      - bash: ['test -n "$LENT_WORD" && wc -c lent.key']
      - bash: ["echo BIRD >> greeting.txt && git commit -qam 'Greet BIRD' && git rev-parse HEAD"]
      - text: |
          Done.

          ~~~errand
          {"outcome":"done","title":"Greet BIRD","summary":"Greeted BIRD."}
          ~~~
  - name: review
    step: review
    turns:
      - text: |
          Seen.

          ~~~errand
          {"outcome":"done","summary":"Nothing to change, says BIRD."}
          ~~~
`

// life is one task's life, and the results of the searches.
type life struct {
	t     *testing.T
	world *demo.World
	cloud bool // its VMs are those of the Hetzner simulator
	dir   string
	bird  string
	lent  lent
	issue int
	awake chan struct{} // closed when VMs may be suspended

	found   []Hit
	bytes   int
	planted needles // on the VM
}

// begin starts a world with VMs of a provider, and assigns its task.
func begin(t *testing.T, bird, provider string) *life {
	t.Helper()
	must(t, common.Err)
	exe, err := os.Executable()
	must(t, err)
	l := &life{t: t, cloud: provider == demo.ProviderHetzner, dir: t.TempDir(), bird: bird, lent: lent{"variable-" + rand.Text(), "file-" + rand.Text()}, awake: make(chan struct{})}
	log, err := os.Create(filepath.Join(l.dir, "errand.log"))
	must(t, err)
	text := strings.NewReplacer("BIRD", bird, "LOOK", exe+" look /tmp/order /tmp/sight", "~~~", "```").Replace(script)
	extra := strings.NewReplacer("VARIABLE", l.lent.variable, "FILE", l.lent.file).Replace(operator)
	took := simhetzner.Scaled(200)
	l.world, err = demo.New(t.Context(), demo.Config{
		Dir: l.dir, BinDir: common.Bin, Agent: []string{exe, "simagent"}, StandIn: true, Kind: "bwrap", Script: text, Extra: extra, Timing: l.timing(), Key: rsatest.Key(),
		Subscription: demo.ByLogin, Files: map[string]string{"greeting.txt": "hello\n", ".errand.yml": settings}, Log: zerolog.New(log).With().Timestamp().Logger(), Version: "test",
		Provider: provider, Took: &took,
		Options: func(o *server.Options) {
			o.Hooks.Runner = func(r workflow.Runner) workflow.Runner { return waker{r, l.awake} }
		},
	})
	must(t, err)
	t.Cleanup(func() {
		if err := errors.Join(l.world.Close(), log.Close()); err != nil {
			t.Error(err)
		}
	})
	i, err := l.ada().OpenIssue(demo.Full, simgithub.NewIssue{Title: "Greet the world", Body: "The greeting is incomplete."})
	must(t, err)
	l.issue = i.Number
	must(t, l.ada().Assign(demo.Full, l.issue, demo.Machine))
	return l
}

func (l *life) ada() simgithub.Person { return l.world.GitHub.As(demo.Maintainer) }

// await waits until the task meets a condition, and returns it.
func (l *life) await(what string, want func(*state.Task) bool) *state.Task {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		list, err := l.world.Server.Store().AllTasks(ctx, state.TaskKey{}, 10)
		if err == nil && len(list) == 1 && want(list[0]) {
			return list[0]
		}
		if err == nil && len(list) == 1 && list[0].Phase == state.PhaseFailed {
			l.t.Fatalf("waiting for %s: the task has failed: %+v", what, list[0].End)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			l.t.Fatalf("waiting for %s: %v", what, ctx.Err())
		}
	}
}

// order writes the fingerprints to a file that the current VM's sandbox can read.
func (l *life) order(n needles) (dir string) {
	l.t.Helper()
	task := l.await("the VM", func(t *state.Task) bool { return t.VM != nil })
	dir = filepath.Join(l.boxes(), task.VM.Name)
	if l.cloud { // machines there have other names, and there is only one
		all, err := filepath.Glob(filepath.Join(l.boxes(), "server-*"))
		must(l.t, err)
		if len(all) != 1 {
			l.t.Fatalf("got machines %q, want one", all)
		}
		dir = all[0]
	}
	data, err := json.Marshal(Order{Index: n.index(), Since: begun})
	must(l.t, err)
	must(l.t, os.WriteFile(filepath.Join(box.TmpPath(dir), "order"), data, 0o600))
	must(l.t, box.ChownForSandboxes(box.TmpPath(dir)))
	return dir
}

// boxes returns the directory of the sandboxes that serve as VMs: errand's, or the cloud's.
func (l *life) boxes() string {
	if l.cloud {
		return filepath.Join(l.dir, "cloud", "boxes", "boxes")
	}
	return filepath.Join(l.dir, "data", "local", "boxes")
}

// timing is short, and suspends VMs as soon as they are idle; those of the cloud in the last quarter of each paid span,
// which lasts seconds.
func (l *life) timing() *server.Timing {
	t := server.DefaultTiming()
	t.StatusGap, t.Settle, t.Backoff, t.Recheck = 150*time.Millisecond, 0, 300*time.Millisecond, 300*time.Millisecond
	t.PollGap, t.ProgressEvery, t.JobRetry = 80*time.Millisecond, 100*time.Millisecond, 150*time.Millisecond
	t.WritesBurst, t.WritesEvery, t.ObjectsEvery = 500, 2*time.Millisecond, time.Millisecond
	if l.cloud {
		t.VMTick, t.SleepBefore = 200*time.Millisecond, demo.PaidSpan
	}
	return &t
}

// sight reads the results of the search in the sandbox of dir.
func (l *life) sight(dir string) Sight {
	l.t.Helper()
	path := filepath.Join(box.TmpPath(dir), "sight")
	data, err := os.ReadFile(path)
	must(l.t, err)
	must(l.t, os.Remove(path))
	var s Sight
	must(l.t, json.Unmarshal(data, &s))
	return s
}

// searchAtGate lets the agent itself search during its run.
func (l *life) searchAtGate() Sight {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), patience)
	defer cancel()
	must(l.t, l.world.Model.Waiting(ctx, "look"))
	l.world.Model.EndToken() // so that it is renewed during the run, and both tokens are in use
	dir := l.order(l.needles())
	l.world.Model.Release("look")
	l.await("the pull request", func(t *state.Task) bool { return t.Phase == state.PhasePROpen && t.Run == nil })
	return l.sight(dir)
}

// searchInside searches as the agent's user outside any run, over errand's SSH connection. It also plants every secret
// there.
func (l *life) searchInside() Sight {
	l.t.Helper()
	l.planted = l.needles()
	dir := l.order(l.planted)
	plant := filepath.Join(box.TmpPath(dir), "planted")
	must(l.t, os.WriteFile(plant, l.planted.planted(), 0o600))
	must(l.t, box.ChownForSandboxes(box.TmpPath(dir)))
	defer func() { must(l.t, os.Remove(plant)) }()
	rec, err := box.ReadRecord(dir)
	must(l.t, err)
	key, err := os.ReadFile(filepath.Join(l.dir, "data", "client_key"))
	must(l.t, err)
	signer, err := ssh.ParsePrivateKey(key)
	must(l.t, err)
	conn, err := net.DialTimeout("unix", rec.SSHSocket, patience)
	must(l.t, err)
	c, chans, reqs, err := ssh.NewClientConn(conn, "box", &ssh.ClientConfig{User: box.User, Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyCallback: ssh.InsecureIgnoreHostKey(), Timeout: patience})
	must(l.t, err)
	client := ssh.NewClient(c, chans, reqs)
	defer func() { _ = client.Close() }()
	session, err := client.NewSession()
	must(l.t, err)
	exe, err := os.Executable()
	must(l.t, err)
	if out, err := session.CombinedOutput(fmt.Sprintf("%s look /tmp/order /tmp/sight", exe)); err != nil {
		l.t.Fatalf("look: %v\n%s", err, out)
	}
	return l.sight(dir)
}

// restartWithToken restarts errand with a long-lived token for the model.
func (l *life) restartWithToken() {
	l.t.Helper()
	token := filepath.Join(l.dir, "secrets", "token-of-the-subscription")
	must(l.t, os.WriteFile(token, []byte(l.world.Model.Subscribe(365*24*time.Hour).Access), 0o600))
	must(l.t, l.world.Stop())
	old, err := os.ReadFile(l.world.ConfigFile())
	must(l.t, err)
	text := aLogin.ReplaceAll(old, []byte(`subscription: {token: "file:`+token+`"}`))
	if bytes.Equal(text, old) {
		l.t.Fatal("the configuration has no login")
	}
	must(l.t, os.WriteFile(l.world.ConfigFile(), text, 0o600))
	must(l.t, l.world.Start(l.t.Context()))
}

var aLogin = regexp.MustCompile(`subscription: \{login:[^}]*\}`)

// sleep lets the VM be suspended, and waits for it.
func (l *life) sleep() {
	l.t.Helper()
	close(l.awake)
	l.await("sleep", func(t *state.Task) bool { return t.Suspended != nil && t.VM == nil })
}

// waker keeps VMs running until its channel is closed.
type waker struct {
	workflow.Runner
	awake <-chan struct{}
}

func (w waker) Pack(ctx context.Context, vm string, spec pack.Spec, to io.Writer) (pack.Manifest, error) {
	select {
	case <-w.awake:
	case <-ctx.Done():
	}
	return w.Runner.Pack(ctx, vm, spec, to)
}

// finish submits a review, which restores the VM, waits for the answer, and merges.
func (l *life) finish() {
	l.t.Helper()
	task := l.await("the pull request", func(t *state.Task) bool { return t.PR != nil })
	_, err := l.ada().Review(demo.Full, task.PR.Number, simgithub.NewReview{Event: "COMMENT", Body: "Is that all?"})
	must(l.t, err)
	l.await("the answer", func(t *state.Task) bool { return t.Round == 1 && t.Phase == state.PhasePROpen })
	must(l.t, l.ada().Merge(demo.Full, task.PR.Number, simgithub.Merge{}))
	l.await("the end", func(t *state.Task) bool { return t.Phase == state.PhaseDone && t.VM == nil })
}
