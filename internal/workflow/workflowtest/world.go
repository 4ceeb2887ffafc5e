// Package workflowtest tests the steps of a task on the GitHub simulator, with real git on a VM that is a directory.
//
// Start with New, which creates a World, and World.Do, which runs a step.
package workflowtest

import (
	"context"
	"encoding/json"
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
	"github.com/errand-bot/errand/internal/rsatest"
	"github.com/errand-bot/errand/internal/secretscan"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/trust"
	"github.com/errand-bot/errand/internal/workflow"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/settings"
)

var (
	// Patterns are the patterns of secrets.
	Patterns = sync.OnceValues(secretscan.LoadPatterns)
)

const (
	// Session is the session of an agent.
	Session = "0b54a6fc-2f0c-4d3b-8f43-5cbd2f0f7a11"
	// LocalID is a commit's ID on the VM.
	LocalID = "1111111111111111111111111111111111111111"
	// RepoName is the repository of every World.
	RepoName = "acme/slug"
	// Secret is a secret of the operator that must not be published anywhere.
	Secret = "hunter2-hunter2-hunter2"
)

// A World is a GitHub simulator, a real client of it, a VM that is a directory with real git, and one task whose steps
// a test runs.
type World struct {
	*simgithub.Sim
	T      *testing.T
	Ada    simgithub.Person // admin
	Forge  *forge.Forge
	Repo   *simgithub.Repo
	Steps  *workflow.Steps
	Host   *Host
	Files  *archive.Dir
	Config workflow.Config

	Ahead atomic.Int64 // offset of GitHub's clock

	Task      *state.Task
	Attempted []string      // marked jobs
	Launch    *state.Launch // the specs of runs about to be started
	Refuse    error         // error of marking

	Approaches []string // for new plans
}

// New returns a world with an issue by ada in state queued. Each change changes the configuration of the steps.
func New(t *testing.T, change ...func(*workflow.Config)) *World {
	t.Helper()
	w := &World{T: t}
	now := func() time.Time { return time.Now().Add(time.Duration(w.Ahead.Load())) }
	sim, err := simgithub.New(simgithub.Config{Dir: t.TempDir(), Key: rsatest.Key(), Now: now})
	Check(t, err)
	base, err := sim.Start("127.0.0.1:0")
	Check(t, err)
	transport := &http.Transport{}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		Check(t, sim.Close())
	})
	w.Sim, w.Ada = sim, sim.As("ada")
	sim.AddUser("eve")
	w.Repo, err = sim.SeedRepo(simgithub.RepoSeed{
		Owner: "acme", Name: "slug", Files: map[string]string{"README.md": "# slug\n", "slug.go": "package slug\n\nfunc Slug() {}\n"},
		Collaborators: map[string]simgithub.Role{
			"ada":        simgithub.RoleAdmin,
			"bob":        simgithub.RoleWrite,
			"errand-bot": simgithub.RoleTriage,
		},
	})
	Check(t, err)
	installation, err := sim.Install(RepoName)
	Check(t, err)
	app := sim.App()
	w.Forge, err = forge.New(forge.Config{
		AppID: app.ID, PrivateKey: app.PEM, WebURL: base, V3APIURL: base + "/api/v3/", V4APIURL: base + "/api/graphql", Transport: transport,
		Timeout: time.Minute, Backoff: time.Millisecond, Writes: forge.RateLimit{Burst: 1000}, Data: forge.RateLimit{Burst: 1000},
	})
	Check(t, err)
	i, err := w.Ada.OpenIssue(RepoName, simgithub.NewIssue{Title: "It breaks", Body: "Always."})
	Check(t, err)
	w.Task = w.NewTask(i, installation)
	w.makeSteps(change)
	return w
}

// NewTask returns the task of an issue that ada opened and assigned.
func (w *World) NewTask(i *simgithub.Issue, installation int64) *state.Task {
	ada := w.Person("ada")
	return &state.Task{
		Key: state.TaskKey{
			Repo:  w.Repo.ID,
			Issue: i.Number,
		}, Version: 1, Visible: 1, Gen: 1, TaskIssue: state.TaskIssue{Installation: installation, IssueNode: i.NodeID, Author: ada,
			Repo: state.Repo{
				ID:            w.Repo.ID,
				Owner:         "acme",
				Name:          "slug",
				DefaultBranch: "main",
				URL:           w.BaseURL() + "/acme/slug",
			}, Settings: settings.Default(), Trigger: state.Trigger{By: ada, Via: "assigned", At: time.Now()},
			Frozen:  state.Frozen{Title: i.Title, Body: i.Body, Hash: state.FreezeHash(i.Title, i.Body), By: ada, At: time.Now()},
			Context: state.Context{Title: i.Title, Body: i.Body, ShowsIssue: true}}, TaskRuns: state.TaskRuns{RunSeq: 1},
		TaskPhase:   state.TaskPhase{Phase: state.PhaseQueued, Since: time.Now()},
		TaskChanges: state.TaskChanges{Branch: state.Branch{Name: "errand/1-it-breaks", Base: "main", BaseSHA: w.Head("main")}},
	}
}

func (w *World) makeSteps(change []func(*workflow.Config)) {
	w.T.Helper()
	p, err := Patterns()
	Check(w.T, err)
	w.Files, err = archive.Open(w.T.TempDir(), func(s string) string { return s })
	Check(w.T, err)
	agents, err := registry.New(registry.DefaultConfig())
	Check(w.T, err)
	w.Host = newHost(w)
	w.Config = workflow.Config{
		Store: memory{
			w,
		}, GitHub: w.Forge, VMs: w.Host, Runner: w.Host, Tether: w.Host, Files: w.Files, Agents: agents, Agent: registry.DefaultConfig(), Providers: map[string]string{"claude": "anthropic"},
		Redact: trust.NewRedactor(p, Secret), Scanner: secretscan.New(p, Secret), Defaults: settings.Default(), Now: time.Now,
		RepoConfig: func(data []byte) (settings.Settings, error) {
			return config.ParseRepo(data, settings.Default(), nil)
		},
	}
	for _, f := range change {
		f(&w.Config)
	}
	w.Steps = workflow.New(w.Config)
}

// Later advances GitHub's clock, which has a resolution of a second.
func (w *World) Later() { w.Ahead.Add(int64(2 * time.Second)) }

// HoursPass advances errand's clock, as during a long outage of GitHub.
func (w *World) HoursPass() {
	cfg := w.Config
	cfg.Now = func() time.Time { return time.Now().Add(2 * time.Hour) }
	w.Steps = workflow.New(cfg)
}

// memory is the store of a world.
type memory struct{ w *World }

// Task implements the store's method.
func (m memory) Task(context.Context, state.TaskKey) (*state.Task, error) { return m.w.Task, nil }

// MarkAttempted implements the store's method.
func (m memory) MarkAttempted(_ context.Context, job string, _ int64) error {
	m.w.Attempted = append(m.w.Attempted, job)
	return m.w.Refuse
}

// MarkLaunch implements the store's method.
func (m memory) MarkLaunch(_ context.Context, job string, _ int64, l state.Launch) error {
	m.w.Attempted, m.w.Launch = append(m.w.Attempted, job), &l
	return m.w.Refuse
}

// Try runs a step.
func (w *World) Try(kind state.JobKind, change ...func(*state.Job)) (event.Event, error) {
	w.T.Helper()
	j := &state.Job{
		ID:      "job-" + string(kind),
		Kind:    kind,
		Task:    w.Task.Key,
		Key:     "1." + string(kind),
		Created: time.Now(),
		Epoch:   1,
		Attempt: 1,
	}
	if w.Task.Run != nil {
		j.Run = w.Task.Run.ID
	} else if w.Task.Work != nil {
		j.Run = w.Task.Work.Run
	}
	for _, f := range change {
		f(j)
	}
	return w.Steps.Handle(w.T.Context(), j)
}

// Do runs a step that must not fail.
func (w *World) Do(kind state.JobKind, change ...func(*state.Job)) event.Event {
	w.T.Helper()
	e, err := w.Try(kind, change...)
	if err != nil {
		w.T.Fatalf("%s: %v", kind, err)
	}
	return e
}

// Again returns a job whose first attempt may have had its effect.
func Again(j *state.Job) { j.Attempted, j.Attempt = true, 2 }

// Vets makes a job vet check the sender of an event.
func Vets(e event.Event) func(*state.Job) {
	return func(j *state.Job) {
		data, err := json.Marshal(e)
		if err != nil {
			panic(err)
		}
		j.Event = data
	}
}

// Args sets a job's arguments.
func Args(args state.JobArgs) func(*state.Job) {
	return func(j *state.Job) { j.Args = args }
}

// Person returns the person with a login.
func (w *World) Person(login string) state.Person {
	w.T.Helper()
	u, ok := w.User(login)
	if !ok {
		w.T.Fatalf("no user %s", login)
	}
	return state.Person{ID: u.ID, Login: u.Login, Bot: u.Type == simgithub.TypeBot}
}

// Head returns the commit of a branch, or "" if there is none.
func (w *World) Head(branch string) string {
	w.T.Helper()
	all, err := w.Ada.Branches(RepoName)
	Check(w.T, err)
	return all[branch]
}

// Issue returns the task's issue.
func (w *World) Issue() *simgithub.Issue { return w.IssueAt(w.Task.Key.Issue) }

// IssueAt returns the issue or pull request with a number.
func (w *World) IssueAt(n int) *simgithub.Issue {
	w.T.Helper()
	i, err := w.Ada.Issue(RepoName, n)
	Check(w.T, err)
	return i
}

// Ours lists the bodies of errand's comments on an issue or pull request.
func (w *World) Ours(n int) (list []string) {
	w.T.Helper()
	for _, c := range w.IssueAt(n).Comments {
		if c.Author == w.App().BotLogin {
			list = append(list, c.Body)
		}
	}
	return list
}

// Push commits files to a branch as a person.
func (w *World) Push(as, branch string, files map[string]string) string {
	w.T.Helper()
	sha, err := w.As(as).PushCommit(RepoName, simgithub.Commit{Branch: branch, Message: "By hand", Files: files})
	Check(w.T, err)
	return sha
}

// MustFault adds a fault to the GitHub simulator.
func (w *World) MustFault(f simgithub.Fault) {
	w.T.Helper()
	Check(w.T, w.Fault(f))
}

// RepoRef returns the task's repository.
func (w *World) RepoRef() forge.Repo { return forge.RepoOf(w.Task) }

// WantProblem checks the problem reported to people for an error.
func WantProblem(t *testing.T, err error, class state.FailureClass, permanent bool) step.Problem {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	p := step.ProblemOf(err)
	if p.Class != class || p.Permanent != permanent || p.Reason == "" || p.Hint == "" {
		t.Errorf("got problem %+[2]v for %[1]v, want class %[3]s, permanent %[4]v, a reason and a hint", err, p, class, permanent)
	}
	return p
}

// Check ends the test if there is an error.
func Check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Err returns the error of a call's two results.
func Err[T any](_ T, err error) error { return err }

// Ptr returns a pointer to a value.
func Ptr[T any](v T) *T { return &v }

// Hashed returns a plan with its hash.
func Hashed(p state.Plan) state.Plan {
	p.Hash = state.PlanHash(p)
	return p
}

// Numbered returns n texts, each with its number.
func Numbered(format string, n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf(format, i))
	}
	return out
}

// Itoa returns a number in decimal.
func Itoa(n int64) string { return fmt.Sprint(n) }

// InstallationID returns the id of the App's installation.
func (w *World) InstallationID() int64 {
	w.T.Helper()
	id, err := w.Install(RepoName)
	Check(w.T, err)
	return id
}

// OpenPull publishes one commit on the task's branch and opens the pull request, as errand does.
func (w *World) OpenPull() *simgithub.Issue {
	w.T.Helper()
	sha := w.Push("bob", w.Task.Branch.Name, map[string]string{"slug.go": "package slug\n\nfunc Slug() { mend() }\n\nfunc mend() {}\n"})
	w.Task.Branch.Head = sha
	pr, err := w.Forge.OpenPR(
		w.T.Context(),
		w.RepoRef(),
		forge.NewPR{Head: w.Task.Branch.Name, Base: "main", Title: "Mend it", Body: "Fixes #1"},
	)
	Check(w.T, err)
	p := pr.State()
	w.Task.PR, w.Task.Phase = &p, state.PhasePROpen
	return w.IssueAt(p.Number)
}

// FirstError returns the first of the errors that is not nil.
func FirstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
