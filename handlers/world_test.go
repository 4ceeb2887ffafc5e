package handlers_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/errand-bot/errand/handlers"
	"github.com/errand-bot/errand/internal/rsatest"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

const full = "acme/slug"

// hook is a received webhook.
type hook struct {
	event, guid string
	payload     []byte
}

// world is a simulated GitHub whose webhooks are caught, and a mapper for them.
type world struct {
	*simgithub.Sim
	t            *testing.T
	ada          simgithub.Person // admin
	installation int64
	repo         *simgithub.Repo
	tasks        *tasks
	mapper       *handlers.Mapper

	mu    sync.Mutex
	hooks []hook
}

func newWorld(t *testing.T) *world {
	t.Helper()
	sim, err := simgithub.New(simgithub.Config{Dir: t.TempDir(), Key: rsatest.Key()})
	check(t, err)
	_, err = sim.Start("127.0.0.1:0")
	check(t, err)
	w := &world{Sim: sim, t: t, ada: sim.As("ada"), tasks: &tasks{}}
	server := httptest.NewServer(http.HandlerFunc(w.catch))
	t.Cleanup(func() {
		check(t, sim.Close())
		server.Close()
	})
	sim.SetWebhook(server.URL, "s3cret")
	sim.AddUser("eve")
	w.repo, err = sim.SeedRepo(simgithub.RepoSeed{
		Owner: "acme", Name: "slug", Files: map[string]string{"README.md": "# slug\n"},
		Collaborators: map[string]simgithub.Role{"ada": simgithub.RoleAdmin, "bob": simgithub.RoleWrite, "errand-bot": simgithub.RoleTriage},
	})
	check(t, err)
	w.installation, err = sim.Install(full)
	check(t, err)
	w.mapper = handlers.NewMapper(handlers.Config{Slug: "errand", BotID: sim.App().BotID, Assignee: "Errand-Bot", Label: "Errand"}, w.tasks)
	w.deliveredHooks()
	return w
}

func (w *world) catch(_ http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.t.Error(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hooks = append(w.hooks, hook{r.Header.Get("X-GitHub-Event"), r.Header.Get("X-GitHub-Delivery"), body})
}

// deliveredHooks waits for all webhooks and returns those since the last call.
func (w *world) deliveredHooks() []hook {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	check(w.t, w.WaitHooks(ctx))
	w.mu.Lock()
	defer w.mu.Unlock()
	list := w.hooks
	w.hooks = nil
	return list
}

// mapped returns one line for each event of the webhooks since the last call, or the reason for a webhook without
// events.
func (w *world) mapped() []string {
	w.t.Helper()
	var out []string
	for _, h := range w.deliveredHooks() {
		events, reason, err := w.mapper.Map(w.t.Context(), h.event, h.guid, h.payload)
		check(w.t, err)
		if len(events) == 0 {
			out = append(out, h.event+": "+reason)
		}
		for _, e := range events {
			if e.Delivery != h.guid {
				w.t.Errorf("%s: got delivery %q, want %q", e.Kind(), e.Delivery, h.guid)
			}
			if e.Candidate() != nil && e.Candidate().Delivery != h.guid {
				w.t.Errorf("%s: got an approval by delivery %q, want %q", e.Kind(), e.Candidate().Delivery, h.guid)
			}
			out = append(out, describeEvent(e))
		}
	}
	return out
}

// issue opens an issue and drops its webhook.
func (w *world) issue(body string) *simgithub.Issue {
	w.t.Helper()
	i, err := w.ada.OpenIssue(full, simgithub.NewIssue{Title: "It breaks", Body: body})
	check(w.t, err)
	w.deliveredHooks()
	return i
}

// pull opens a pull request from a new branch and stores it as that of issue 1's task.
func (w *world) pull() *simgithub.Issue {
	w.t.Helper()
	_, err := w.As("bob").PushCommit(full, simgithub.Commit{Branch: "errand/1", Message: "Mend it", Files: map[string]string{"a.txt": "one\ntwo\n"}})
	check(w.t, err)
	p, err := w.As("bob").OpenPull(full, simgithub.NewPull{Title: "Mend it", Head: "errand/1"})
	check(w.t, err)
	w.deliveredHooks()
	w.tasks.list = append(w.tasks.list, &state.Task{
		Key: w.key(1), TaskIssue: state.TaskIssue{Installation: w.installation}, TaskChanges: state.TaskChanges{PR: &state.PR{Number: p.Number}, Branch: state.Branch{Name: "errand/1", Head: p.Pull.HeadSHA}},
	})
	return p
}

func (w *world) key(issue int) state.TaskKey { return state.TaskKey{Repo: w.repo.ID, Issue: issue} }

// describeEvent formats an event with all fields that rows of the transition table use.
func describeEvent(e event.Event) string {
	words := []string{string(e.Kind()), fmt.Sprintf("#%d", e.Task.Issue)}
	add := func(format string, args ...any) { words = append(words, fmt.Sprintf(format, args...)) }
	if e.By.ID != 0 {
		add("by %s", e.By.Login)
	}
	if e.By.Bot {
		add("(bot)")
	}
	for _, pair := range [][2]string{{"via", string(e.Via)}, {"base", e.Base()}, {"head", event.Of[event.Pushed](e).Head}, {"says", event.Of[event.AccessLost](e).Lost + event.Of[event.IssueGone](e).Lost}} {
		if pair[1] != "" {
			add("%s %s", pair[0], pair[1])
		}
	}
	if e.Issue() != nil {
		add("%q", e.Issue().Title)
	}
	if c := e.Comment(); c != nil {
		for _, flag := range []struct {
			on   bool
			word string
		}{{c.OnPR, "on-pr"}, {c.Thread != 0, "in-thread"}, {c.InIssue, "in-issue"}, {c.Mention, "mention"}, {c.Quoted, "quoted"}, {event.Of[event.CommentEdited](e).OnlyBoxes, "only-boxes"}, {event.Of[event.CommentEdited](e).Ticked, "ticked"}} {
			if flag.on {
				add("%s", flag.word)
			}
		}
	}
	for _, o := range event.Of[event.Commented](e).Orders {
		add("order:%s", o.Verb)
	}
	if e.Candidate() != nil {
		add("candidate:%s:%d", e.Candidate().Via, e.Candidate().Choice)
	}
	if r, ok := e.Payload.(event.Reviewed); ok {
		add("review:%s:%q", r.Review.State, r.Review.Body)
		if r.Review.Remark != "" {
			add("remark:%s", r.Review.Remark)
		}
	}
	if draft := event.Of[event.PRChanged](e).Draft; draft != nil && *draft {
		add("draft")
	}
	if event.Of[event.PRClosed](e).Merged {
		add("merged")
	}
	return strings.Join(words, " ")
}

// tasks is a store of literal tasks, none of which has ended.
type tasks struct {
	list []*state.Task
	err  error
}

func (s *tasks) Task(_ context.Context, key state.TaskKey) (*state.Task, error) {
	for _, t := range s.list {
		if t.Key == key {
			return t, s.err
		}
	}
	return nil, s.err
}

func (s *tasks) TaskByPR(_ context.Context, repo int64, number int) (*state.Task, error) {
	for _, t := range s.list {
		if t.Key.Repo == repo && (t.PR != nil && t.PR.Number == number || t.IsReplacedPR(number)) {
			return t, s.err
		}
	}
	return nil, s.err
}

func (s *tasks) Overviews(context.Context) (open []state.TaskOverview, err error) {
	for _, t := range s.list {
		if !t.Ended() {
			open = append(open, t.Overview())
		}
	}
	return open, s.err
}

func (s *tasks) OutOfReach(context.Context) (list []*state.Task, err error) {
	for _, t := range s.list {
		if t.Ended() {
			list = append(list, t)
		}
	}
	return list, s.err
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
