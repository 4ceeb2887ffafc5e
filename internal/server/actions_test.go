package server

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/admin"
	"github.com/errand-bot/errand/internal/forge/forgetest"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/kv/boltkv"
	"github.com/errand-bot/errand/state/store"
)

// m is a JSON object.
type m = map[string]any

// hub is the part of GitHub that a command asks: octo/app, repository 70, is octo/next in installation 8 by now.
type hub struct {
	issue   m
	private bool
	gone    bool   // no installation includes the repository
	moved   bool   // the issue redirects to the one in octo/other
	revoke  bool   // write access is taken back while the issue is read
	fails   string // the part of the paths that fail
	revoked bool
}

func (h *hub) serve(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, "/api/v3")
	if h.fails != "" && strings.Contains(path, h.fails) {
		forgetest.Answer(w, http.StatusUnprocessableEntity, m{"message": "no"})
		return
	}
	owner := m{"login": "octo"}
	switch {
	case path == "/repositories/70/installation" && !h.gone:
		forgetest.Answer(w, http.StatusOK, m{"id": 8})
	case path == "/repositories/70":
		forgetest.Answer(w, http.StatusOK, m{"id": 70, "name": "next", "owner": owner, "private": h.private, "default_branch": "main", "html_url": "https://git.example/octo/next"})
	case path == "/repos/octo/next/issues/1":
		h.revoked = h.revoked || h.revoke
		url := "https://git.example/octo/next/issues/1"
		if h.moved {
			url = "https://git.example/octo/other/issues/5"
		}
		forgetest.Answer(w, http.StatusOK, m{"number": 1, "node_id": "I_" + url, "state": "open", "html_url": url, "title": "Bug", "body": "It breaks."})
	case path == "/repos/octo/next/collaborators/wes/permission":
		permission := "write"
		if h.revoked {
			permission = "read"
		}
		forgetest.Answer(w, http.StatusOK, m{"permission": permission, "user": m{"id": 2, "login": "wes"}})
	default: // also everything of octo/app, which is another repository by now
		forgetest.Answer(w, http.StatusNotFound, m{"message": "Not Found"})
	}
}

// TestCommandOnEndedTaskReadsRepositoryAgain: a command that begins another life of a task uses the repository as it is now, whatever is
// known from before the end, and the permission that the person has last.
func TestCommandOnEndedTaskReadsRepositoryAgain(t *testing.T) {
	t.Parallel()
	wes := state.Person{ID: 2, Login: "wes"}
	for name, c := range map[string]struct {
		hub     hub
		by      state.Person // zero is an operator
		refused string
		err     string
	}{
		"renamed, now public, by an operator":       {},
		"renamed, still private, by an operator":    {hub: hub{private: true}},
		"by a writer":                               {by: wes},
		"write access is taken back meanwhile":      {hub: hub{revoke: true}, by: wes, refused: "commands need write access"},
		"an operator has no access to take back":    {hub: hub{revoke: true}},
		"without write access to a moved issue":     {hub: hub{moved: true, revoked: true}, by: wes, refused: "commands need write access"},
		"the issue was transferred":                 {hub: hub{moved: true}, refused: "the issue was transferred: it is at https://git.example/octo/other/issues/5"},
		"the App is not installed":                  {hub: hub{gone: true}, by: wes, refused: "errand has no access to the repository"},
		"GitHub does not answer for the place":      {hub: hub{fails: "/repositories/"}, err: "read the repository"},
		"GitHub does not answer for the issue":      {hub: hub{fails: "/issues/"}, err: "read the issue"},
		"GitHub does not answer for the permission": {hub: hub{fails: "/permission"}, by: wes, err: "read your permission"},
	} {
		for _, verb := range []state.Verb{state.VerbRetry, state.VerbRestart} {
			t.Run(name+", "+string(verb), func(t *testing.T) {
				t.Parallel()
				h := c.hub
				s, task := endedTask(t, forgetest.NewFake(t, h.serve).URL)
				done, err := s.act(t.Context(), task, c.by, state.Order{Verb: verb}, store.Action{ID: "1", By: "somebody", Command: string(verb)})
				now, terr := s.store.Task(t.Context(), task.Key)
				if terr != nil {
					t.Fatal(terr)
				}
				if c.err != "" || c.refused != "" {
					var unchanged admin.UnchangedError
					if errors.As(err, &unchanged) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) || !strings.HasPrefix(done.Result, c.refused) ||
						done.Refused != (c.refused != "") || now.Version != task.Version {
						t.Errorf("got %+v, error %v and version %d", done, err, now.Version)
					}
					return
				}
				if err != nil || done.Refused || now.Ended() || now.Gen != 2 {
					t.Fatalf("got %+v, error %v, phase %s", done, err, now.Phase)
				}
				if now.Repo.FullName() != "octo/next" || now.Repo.Private != h.private || now.Installation != 8 {
					t.Errorf("got repository %+v in installation %d", now.Repo, now.Installation)
				}
			})
		}
	}
}

// endedTask returns a server with a canceled task of the private repository octo/app.
func endedTask(t *testing.T, github string) (*Server, *state.Task) {
	t.Helper()
	db, err := boltkv.Open(filepath.Join(t.TempDir(), "errand.db"), boltkv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	st, err := store.Open(t.Context(), db, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{store: st, forge: forgetest.New(t, github), opts: Options{Log: zerolog.Nop(), Now: time.Now}}
	if err := s.makePause(t.Context()); err != nil {
		t.Fatal(err)
	}
	key := state.TaskKey{Repo: 70, Issue: 1}
	for _, e := range []event.Event{
		{
			Task: key, By: state.Person{ID: 3, Login: "ada"}, Permission: state.PermissionWrite, Via: state.TriggerAssigned, At: time.Now(), Installation: 7,
			Repo:    &state.Repo{ID: 70, Owner: "octo", Name: "app", Private: true, URL: "https://git.example/octo/app"},
			Payload: event.Triggered{Issue: &state.Issue{Node: "I_1", Title: "Bug", Body: "It breaks."}},
		},
		event.OperatorCommand(key, "0", state.Order{Verb: state.VerbCancel}, false),
	} {
		if _, err := st.Apply(context.Background(), e, store.Ack{}); err != nil {
			t.Fatal(err)
		}
	}
	task, err := st.Task(t.Context(), key)
	if err != nil || !task.Ended() {
		t.Fatalf("got %+v, %v", task, err)
	}
	return s, task
}
