package workflow_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/agent/registry"
	"github.com/errand-bot/errand/internal/archive"
	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/secretscan"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/trust"
	"github.com/errand-bot/errand/internal/workflow"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/state"
)

var (
	appKey   = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })
	patterns = sync.OnceValues(secretscan.LoadPatterns)
)

const (
	full   = "acme/slug"
	secret = "hunter2-hunter2-hunter2" // of the operator: it must come out nowhere
)

// world is a real GitHub stand-in, a real client of it, real git on a "VM" that is a folder, and one
// task whose steps a test takes.
type world struct {
	*simgithub.Sim
	t     *testing.T
	ada   simgithub.Person // admin
	forge *forge.Forge
	repo  *simgithub.Repo
	steps *workflow.Steps
	host  *host
	files *archive.Dir
	cfg   workflow.Config

	ahead atomic.Int64 // of GitHub's clock

	task      *state.Task
	attempted []string      // jobs that were marked
	launch    *state.Launch // what a run was about to be started with
	refuse    error         // of marking

	approaches []string // of plans that are made
}

func newWorld(t *testing.T, change ...func(*workflow.Config)) *world {
	t.Helper()
	key, err := appKey()
	check(t, err)
	w := &world{t: t}
	now := func() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) }
	sim, err := simgithub.New(simgithub.Config{Dir: t.TempDir(), Key: key, Now: now})
	check(t, err)
	base, err := sim.Start("127.0.0.1:0")
	check(t, err)
	transport := &http.Transport{}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		check(t, sim.Close())
	})
	w.Sim, w.ada = sim, sim.As("ada")
	sim.AddUser("eve")
	w.repo, err = sim.SeedRepo(simgithub.RepoSeed{
		Owner: "acme", Name: "slug", Files: map[string]string{"README.md": "# slug\n", "slug.go": "package slug\n\nfunc Slug() {}\n"},
		Collaborators: map[string]simgithub.Role{"ada": simgithub.RoleAdmin, "bob": simgithub.RoleWrite, "errand-bot": simgithub.RoleTriage},
	})
	check(t, err)
	installation, err := sim.Install(full)
	check(t, err)
	app := sim.App()
	w.forge, err = forge.New(forge.Config{
		AppID: app.ID, PrivateKey: app.PEM, WebURL: base, V3APIURL: base + "/api/v3/", V4APIURL: base + "/api/graphql", Transport: transport,
		Timeout: time.Minute, Backoff: time.Millisecond, Writes: forge.RateLimit{Burst: 1000}, Data: forge.RateLimit{Burst: 1000},
	})
	check(t, err)
	i, err := w.ada.OpenIssue(full, simgithub.NewIssue{Title: "It breaks", Body: "Always."})
	check(t, err)
	w.task = w.newTask(i, installation)
	w.makeSteps(change)
	return w
}

// newTask is the task of an issue that ada opened and handed over.
func (w *world) newTask(i *simgithub.Issue, installation int64) *state.Task {
	ada := w.person("ada")
	return &state.Task{
		Key: state.TaskKey{Repo: w.repo.ID, Issue: i.Number}, Version: 1, Visible: 1, Gen: 1, TaskIssue: state.TaskIssue{Installation: installation, IssueNode: i.NodeID, Author: ada,
			Repo: state.Repo{ID: w.repo.ID, Owner: "acme", Name: "slug", DefaultBranch: "main", URL: w.BaseURL() + "/acme/slug"}, Settings: state.DefaultSettings(), Trigger: state.Trigger{By: ada, Via: "assigned", At: time.Now()},
			Frozen:  state.Frozen{Title: i.Title, Body: i.Body, Hash: state.FreezeHash(i.Title, i.Body), By: ada, At: time.Now()},
			Context: state.Context{Title: i.Title, Body: i.Body, ShowsIssue: true}}, TaskRuns: state.TaskRuns{RunSeq: 1},
		TaskPhase:   state.TaskPhase{Phase: state.PhaseQueued, Since: time.Now()},
		TaskChanges: state.TaskChanges{Branch: state.Branch{Name: "errand/1-it-breaks", Base: "main", BaseSHA: w.head("main")}},
	}
}

func (w *world) makeSteps(change []func(*workflow.Config)) {
	w.t.Helper()
	p, err := patterns()
	check(w.t, err)
	w.files, err = archive.Open(w.t.TempDir(), func(s string) string { return s })
	check(w.t, err)
	agents, err := registry.New(registry.DefaultConfig())
	check(w.t, err)
	w.host = newHost(w)
	w.cfg = workflow.Config{
		Store: w, GitHub: w.forge, VMs: w.host, Runner: w.host, Tether: w.host, Files: w.files, Agents: agents, Agent: registry.DefaultConfig(), Providers: map[string]string{"claude": "anthropic"},
		Redact: trust.NewRedactor(p, secret), Scanner: secretscan.New(p, secret), Defaults: state.DefaultSettings(), Now: time.Now,
		RepoConfig: func(data []byte) (state.Settings, error) {
			return config.ParseRepo(data, state.DefaultSettings(), nil)
		},
	}
	for _, f := range change {
		f(&w.cfg)
	}
	w.steps = workflow.New(w.cfg)
}

// later lets GitHub's clock, which counts whole seconds, go on.
func (w *world) later() { w.ahead.Add(int64(2 * time.Second)) }

// hoursPass lets our own clock go on, as while GitHub is down for long.
func (w *world) hoursPass() {
	cfg := w.cfg
	cfg.Now = func() time.Time { return time.Now().Add(2 * time.Hour) }
	w.steps = newSteps(cfg)
}

// Task is the store's.
func (w *world) Task(context.Context, state.TaskKey) (*state.Task, error) { return w.task, nil }

// MarkAttempted is the store's.
func (w *world) MarkAttempted(_ context.Context, job string, _ int64) error {
	w.attempted = append(w.attempted, job)
	return w.refuse
}

// MarkLaunch is the store's.
func (w *world) MarkLaunch(_ context.Context, job string, _ int64, l state.Launch) error {
	w.attempted, w.launch = append(w.attempted, job), &l
	return w.refuse
}

// try takes a step.
func (w *world) try(kind state.JobKind, change ...func(*state.Job)) (state.Event, error) {
	w.t.Helper()
	j := &state.Job{ID: "job-" + string(kind), Kind: kind, Task: w.task.Key, Key: "1." + string(kind), Created: time.Now(), Epoch: 1, Attempt: 1}
	if w.task.Run != nil {
		j.Run = w.task.Run.ID
	} else if w.task.Work != nil {
		j.Run = w.task.Work.Run
	}
	for _, f := range change {
		f(j)
	}
	return w.steps.Handle(w.t.Context(), j)
}

// do takes a step that must not fail.
func (w *world) do(kind state.JobKind, change ...func(*state.Job)) state.Event {
	w.t.Helper()
	e, err := w.try(kind, change...)
	if err != nil {
		w.t.Fatalf("%s: %v", kind, err)
	}
	return e
}

// again is a job whose first attempt may have had its effect.
func again(j *state.Job) { j.Attempted, j.Attempt = true, 2 }

func args(pairs ...string) func(*state.Job) {
	return func(j *state.Job) {
		j.Args = map[string]string{}
		for i := 0; i+1 < len(pairs); i += 2 {
			j.Args[pairs[i]] = pairs[i+1]
		}
	}
}

func (w *world) person(login string) state.Person {
	w.t.Helper()
	u, ok := w.User(login)
	if !ok {
		w.t.Fatalf("no user %s", login)
	}
	return state.Person{ID: u.ID, Login: u.Login, Bot: u.Type == simgithub.TypeBot}
}

// head is the commit of a branch, empty if there is none.
func (w *world) head(branch string) string {
	w.t.Helper()
	all, err := w.ada.Branches(full)
	check(w.t, err)
	return all[branch]
}

func (w *world) issue() *simgithub.Issue { return w.number(w.task.Key.Issue) }

func (w *world) number(n int) *simgithub.Issue {
	w.t.Helper()
	i, err := w.ada.Issue(full, n)
	check(w.t, err)
	return i
}

// ours lists the bodies of our comments on an issue or pull request.
func (w *world) ours(n int) (list []string) {
	w.t.Helper()
	for _, c := range w.number(n).Comments {
		if c.Author == w.App().BotLogin {
			list = append(list, c.Body)
		}
	}
	return list
}

// push commits files to a branch as a person.
func (w *world) push(as, branch string, files map[string]string) string {
	w.t.Helper()
	sha, err := w.As(as).PushCommit(full, simgithub.Commit{Branch: branch, Message: "By hand", Files: files})
	check(w.t, err)
	return sha
}

func (w *world) fault(f simgithub.Fault) {
	w.t.Helper()
	check(w.t, w.Fault(f))
}

func (w *world) repoRef() forge.Repo { return forge.RepoOf(w.task) }

// wantProblem holds an error against what people must be told.
func wantProblem(t *testing.T, err error, class string, permanent bool) step.Problem {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	p := step.ProblemOf(err)
	if p.Class != class || p.Permanent != permanent || p.Reason == "" || p.Hint == "" {
		t.Errorf("%v means %+v, want class %s, permanent %v, a reason and a hint", err, p, class, permanent)
	}
	return p
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func second[T any](_ T, err error) error { return err }

func ptr[T any](v T) *T { return &v }

func hashed(p state.Plan) state.Plan {
	p.Hash = state.PlanHash(p)
	return p
}

func numbered(format string, n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf(format, i))
	}
	return out
}

func itoa(n int64) string { return fmt.Sprint(n) }

func newSteps(cfg workflow.Config) *workflow.Steps { return workflow.New(cfg) }

func (w *world) installationOf() int64 {
	w.t.Helper()
	id, err := w.Install(full)
	check(w.t, err)
	return id
}

// openPull publishes one commit on the task's branch and opens the pull request, as errand does.
func (w *world) openPull() *simgithub.Issue {
	w.t.Helper()
	sha := w.push("bob", w.task.Branch.Name, map[string]string{"slug.go": "package slug\n\nfunc Slug() { mend() }\n\nfunc mend() {}\n"})
	w.task.Branch.Head = sha
	pr, err := w.forge.OpenPR(w.t.Context(), w.repoRef(), forge.NewPR{Head: w.task.Branch.Name, Base: "main", Title: "Mend it", Body: "Fixes #1"})
	check(w.t, err)
	p := pr.State()
	w.task.PR, w.task.Phase = &p, state.PhasePROpen
	return w.number(p.Number)
}
