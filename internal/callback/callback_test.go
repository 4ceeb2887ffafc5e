package callback_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/callback"
	"github.com/errand-bot/errand/internal/callback/tools"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/machine"
	"github.com/errand-bot/errand/state/store"
)

// world is a service before one task, which is changed by the state machine itself.
type world struct {
	t       *testing.T
	service *callback.Service
	calls   int

	mu   sync.Mutex
	task *state.Task
	fail error
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, task: &state.Task{
		Key: state.TaskKey{Repo: 7, Issue: 1}, Gen: 1, TaskPhase: state.TaskPhase{Phase: state.PhaseImplementing},
		TaskRuns: state.TaskRuns{Run: &state.Run{ID: "7-1-4", Kind: state.RunImplement, State: state.RunActive}},
	}}
	w.restart()
	return w
}

// restart replaces the service by a new one without in-memory state.
func (w *world) restart() {
	w.service = callback.New(callback.Config{
		Store: w, Log: zerolog.Nop(),
		Clean: func(s string) string { return strings.ReplaceAll(s, "hunter2", "[redacted]") },
		Issue: func(_ context.Context, _ *state.Task, n int) (string, error) {
			switch n {
			case 5:
				return "#5: text", nil
			case 6:
				return "", callback.ErrNotVisible
			}
			return "", callback.ErrUnknown
		},
	})
}

func (w *world) Task(context.Context, state.TaskKey) (*state.Task, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.task, nil
}

func (w *world) Apply(_ context.Context, e event.Event, _ store.Ack) (store.Applied, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fail != nil {
		return store.Applied{}, w.fail
	}
	e.Now = time.Now()
	if ch := machine.Next(w.task, e, machine.DefaultPolicy()); ch.Task != nil {
		w.task = ch.Task
		return store.Applied{Task: w.task, Changed: true}, nil
	}
	return store.Applied{Task: w.task}, nil
}

// send sends a body as a call of a tool.
func (w *world) send(tool, body string) (int, tools.Answer) {
	w.t.Helper()
	rec := httptest.NewRecorder()
	task, _ := w.Task(w.t.Context(), state.TaskKey{})
	w.service.Serve(rec, httptest.NewRequest(http.MethodPost, "/callback/"+tool, strings.NewReader(body)), task, tool)
	var a tools.Answer
	if rec.Code == http.StatusOK {
		if err := json.Unmarshal(rec.Body.Bytes(), &a); err != nil {
			w.t.Fatalf("answer %q: %v", rec.Body, err)
		}
	}
	return rec.Code, a
}

// call calls a tool with a new id.
func (w *world) call(tool, arguments string) tools.Answer {
	w.t.Helper()
	w.calls++
	code, a := w.send(tool, fmt.Sprintf(`{"id":"call-%08d","arguments":%s}`, w.calls, arguments))
	if code != http.StatusOK {
		w.t.Fatalf("%s %s: status %d", tool, arguments, code)
	}
	return a
}

func quoted(s string) string {
	var b bytes.Buffer
	_ = json.NewEncoder(&b).Encode(s)
	return strings.TrimSpace(b.String())
}

// TestValidCallsAreStored: valid calls are stored with the task, cleaned.
func TestValidCallsAreStored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, c := range []struct{ tool, arguments, want string }{
		{tools.Note, `{"kind":"decision","text":"use hunter2, because"}`, "Stored."},
		{tools.Propose, `{"title":"Two\nlines","body":"Body hunter2."}`, "proposal 1"},
		{tools.Context, `{"kind":"notes"}`, "decision"},
		{tools.Context, `{"kind":"checks"}`, "No checks"},
		{tools.Context, `{"kind":"issue","number":5}`, "#5: text"},
		{tools.Finish, `{"outcome":"done","title":"T","threads":[{"id":"thread:1","answer":"Yes."}],"unknown":1}`, "replaces the closing block"},
		{tools.Finish, `{"outcome":"done","title":"T2"}`, "replaces the closing block"},
		{tools.Ask, `{"question":"Which?","options":["a","","b"]}`, "Stop now"},
	} {
		if a := w.call(c.tool, c.arguments); a.Refused || !strings.Contains(a.Text, c.want) {
			t.Errorf("%s %s: %+v", c.tool, c.arguments, a)
		}
	}
	task := w.task
	if n := task.Notes[0]; n.Text != "use [redacted], because" || n.Kind != state.NoteDecision || n.Run != "7-1-4" {
		t.Errorf("note %+v", n)
	}
	if p := task.Proposed[0]; p.Title != "Two lines" || p.Body != "Body [redacted]." {
		t.Errorf("proposal %+v", p)
	}
	if c := task.Run.Conclusion; c.Outcome != "question" || c.Question != "Which?" || len(c.Options) != 2 {
		t.Errorf("conclusion %+v", c)
	}
	if task.Phase != state.PhaseImplementing {
		t.Errorf("a call moved the task to %s", task.Phase)
	}
}

// TestInvalidCallsAreRefused: invalid calls are refused with a message for the agent, and change nothing.
func TestInvalidCallsAreRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ tool, arguments, want string }{
		"tool":            {"push", `{}`, "no tool"},
		"arguments":       {tools.Note, `"x"`, "cannot be read"},
		"null":            {tools.Note, `null`, "kind must be"},
		"kind":            {tools.Note, `{"kind":"x","text":"y"}`, "kind must be"},
		"empty note":      {tools.Note, `{"kind":"fact","text":" \n"}`, "text is missing"},
		"long note":       {tools.Note, `{"kind":"fact","text":` + quoted(strings.Repeat("ä", 1001)) + `}`, "1001 characters"},
		"no question":     {tools.Ask, `{"question":""}`, "question is missing"},
		"many options":    {tools.Ask, `{"question":"?","options":["1","2","3","4","5","6","7"]}`, "7 entries"},
		"no body":         {tools.Propose, `{"title":"x"}`, "body is missing"},
		"long title":      {tools.Propose, `{"title":` + quoted(strings.Repeat("x", 201)) + `,"body":"b"}`, "201 characters"},
		"outcome":         {tools.Finish, `{"outcome":"merged"}`, "outcome must be"},
		"blocked by what": {tools.Finish, `{"outcome":"blocked"}`, "requires the field question"},
		"thread twice":    {tools.Finish, `{"outcome":"done","threads":[{"id":"1","answer":"a"},{"id":"1","answer":"b"}]}`, "twice"},
		"unseen issue":    {tools.Context, `{"kind":"issue","number":6}`, "write access"},
		"no issue":        {tools.Context, `{"kind":"issue","number":9}`, "no such issue or pull"},
		"which issue":     {tools.Context, `{"kind":"issue"}`, "number"},
		"other context":   {tools.Context, `{"kind":"secrets"}`, "kind must be"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if a := w.call(c.tool, c.arguments); !a.Refused || !strings.Contains(a.Text, c.want) {
				t.Errorf("%+v, want %q", a, c.want)
			}
			if r := w.task.Run; len(r.Calls) > 0 || r.Conclusion != nil || len(w.task.Notes)+len(w.task.Proposed) > 0 {
				t.Errorf("it changed the task: %+v", w.task)
			}
		})
	}
	w := newWorld(t)
	for _, body := range []string{"", "{", `{"id":"short","arguments":{}}`, `{"id":"../../../etc/passwd","arguments":{}}`, strings.Repeat("x", tools.MaxCall+1)} {
		if code, a := w.send(tools.Note, body); code != http.StatusOK || !a.Refused {
			t.Errorf("%.30q: %d %+v", body, code, a)
		}
	}
}

// TestRepeatedCallsCountOnce: a repeated call gets the same answer and counts once; a call that could not be stored is not
// acknowledged.
func TestRepeatedCallsCountOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const call = `{"id":"the-same-call","arguments":{"title":"T","body":"B"}}`
	w.fail = context.DeadlineExceeded
	if code, _ := w.send(tools.Propose, call); code != http.StatusServiceUnavailable {
		t.Errorf("status %d although nothing was kept", code)
	}
	w.fail = nil
	for range 3 {
		if _, a := w.send(tools.Propose, call); a.Refused || !strings.Contains(a.Text, "proposal 1.") {
			t.Errorf("%+v", a)
		}
	}
	if len(w.task.Proposed) != 1 {
		t.Errorf("proposals %v", w.task.Proposed)
	}
}

// TestEndlessCallsAreRefused: endless calls are refused, and the task stays small.
func TestEndlessCallsAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	body := quoted(strings.Repeat("x", 6000))
	refused := 0
	for range 300 {
		for _, a := range []tools.Answer{
			w.call(tools.Note, `{"kind":"fact","text":"x"}`), w.call(tools.Propose, `{"title":"x","body":`+body+`}`), w.call(tools.Context, `{"kind":"notes"}`),
		} {
			if a.Refused {
				refused++
			}
		}
	}
	data, err := json.Marshal(w.task)
	if err != nil || len(data) > 60_000 || refused < 700 {
		t.Errorf("the task has %d bytes, %d calls were refused (%v)", len(data), refused, err)
	}
}

// TestReadsAreCountedOverARestart: the limit on context calls survives a restart of errand and does not affect other
// calls.
func TestReadsAreCountedOverARestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fail = context.DeadlineExceeded
	if code, _ := w.send(tools.Context, `{"id":"a-call-of-mine","arguments":{"kind":"notes"}}`); code != http.StatusServiceUnavailable {
		t.Errorf("status %d although it could not be counted", code)
	}
	w.fail = nil
	for i := range state.MaxReads {
		if i == state.MaxReads/2 {
			w.restart()
		}
		if a := w.call(tools.Context, `{"kind":"notes"}`); a.Refused {
			t.Fatalf("call %d: %+v", i, a)
		}
	}
	w.restart()
	if a := w.call(tools.Context, `{"kind":"notes"}`); !a.Refused || !strings.Contains(a.Text, "50 times") {
		t.Errorf("one more: %+v", a)
	}
	if a := w.call(tools.Note, `{"kind":"fact","text":"x"}`); a.Refused || len(w.task.Run.Calls) != 1 {
		t.Errorf("a note: %+v, calls %v", a, w.task.Run.Calls)
	}
}

// FuzzServe checks that every request is answered, and that the task stays unchanged or within its limits.
func FuzzServe(f *testing.F) {
	for i := range tools.Names() {
		f.Add(uint8(i), `{"id":"12345678","arguments":{"kind":"fact","text":"x","question":"q","title":"t","body":"b","outcome":"done"}}`)
	}
	f.Add(uint8(3), `{"id":"12345678","arguments":{"outcome":"done","threads":[{"id":"","answer":""}],"files":["`+"\u202e"+`"]}}`)
	f.Fuzz(func(t *testing.T, n uint8, body string) {
		w := newWorld(t)
		code, _ := w.send(append(tools.Names(), "other")[int(n)%6], body)
		if code != http.StatusOK && code != http.StatusServiceUnavailable {
			t.Errorf("status %d", code)
		}
		if len(w.task.Run.Calls) > 1 || w.task.Phase != state.PhaseImplementing {
			t.Errorf("task %+v", w.task)
		}
	})
}
