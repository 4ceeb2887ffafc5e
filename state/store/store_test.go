package store

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/kv"
	"github.com/errand-bot/errand/state/kv/boltkv"
	"github.com/errand-bot/errand/state/machine"
)

// testStore is a store on its own bbolt file, with a clock that the test moves and a Next that follows instructions in
// the event. It is checked when the test ends.
type testStore struct {
	*Store
	db   kv.DB
	path string

	mu    sync.Mutex
	clock time.Time
}

// The people of the tests: ada may write to the repository.
var (
	ada = state.Person{ID: 2, Login: "ada"}
	eve = state.Person{ID: 3, Login: "eve"}
)

var testStart = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

func newTestStore(t *testing.T) *testStore {
	t.Helper()
	s := &testStore{clock: testStart, path: filepath.Join(t.TempDir(), "errand.db")}
	s.reopen(t)
	t.Cleanup(func() {
		s.wantSound(t)
		if err := s.db.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// reopen closes the file, if it is open, and opens it again.
func (s *testStore) reopen(t *testing.T) {
	t.Helper()
	if s.db != nil {
		if err := s.db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	db, err := boltkv.Open(s.path, boltkv.Options{CheckRepeatable: true})
	if err != nil {
		t.Fatal(err)
	}
	s.db = db
	s.Store, err = Open(context.Background(), db, Options{Now: s.time})
	if err != nil {
		t.Fatal(err)
	}
	s.next = spelledOut
}

func (s *testStore) time() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clock
}

func (s *testStore) advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clock = s.clock.Add(d)
}

func (s *testStore) wantSound(t *testing.T) {
	t.Helper()
	problems, err := s.Check(context.Background())
	if err != nil || len(problems) > 0 {
		t.Errorf("store is not sound: got %q, error %v", problems, err)
	}
}

// spelledOut is a Next for tests. Detail contains words: save, drop, phase=P, pr=N, body=N (bytes). Paths contains
// jobs: LANE/KEY, or LANE/KEY+DURATION for a delayed one.
func spelledOut(t *state.Task, e event.Event, _ machine.Policy) machine.Change {
	ch := machine.Change{Note: string(e.Via)}
	save := func() *state.Task {
		if ch.Task == nil {
			ch.Task = &state.Task{TaskPhase: state.TaskPhase{Phase: state.PhaseQueued}}
			if t != nil {
				ch.Task = t.Clone()
			}
		}
		return ch.Task
	}
	for word := range strings.FieldsSeq(string(e.Via)) {
		name, value, _ := strings.Cut(word, "=")
		number, _ := strconv.Atoi(value)
		switch name {
		case "save":
			save()
		case "drop":
			ch.DropWork = true
		case "phase":
			save().Phase, save().Since = state.Phase(value), e.Now
		case "pr":
			save().PR = &state.PR{Number: number}
		case "body":
			save().Frozen.Body = noise(number)
		}
	}
	for _, spec := range event.Of[event.Conflict](e).Paths {
		ch.Jobs = append(ch.Jobs, spelledJob(spec, e))
	}
	return ch
}

func spelledJob(spec string, e event.Event) state.Job {
	lane, key, _ := strings.Cut(spec, "/")
	key, delay, _ := strings.Cut(key, "+")
	job := state.Job{Kind: state.JobPost, Lane: state.Lane(lane), Key: key, Post: &state.Post{Kind: state.PostReply, Text: key}}
	if d, err := time.ParseDuration(delay); err == nil {
		job.NotBefore = e.Now.Add(d)
	}
	return job
}

// noise returns n bytes of text that compress to no less than three quarters.
func noise(n int) string {
	raw := make([]byte, n*3/4+3)
	_, _ = rand.NewChaCha8([32]byte{}).Read(raw) // never fails
	return base64.RawURLEncoding.EncodeToString(raw)[:n]
}

// storedEvent returns the event of a job vet.
func storedEvent(t *testing.T, job *state.Job) event.Event {
	t.Helper()
	var e event.Event
	if err := json.Unmarshal(job.Event, &e); err != nil {
		t.Fatal(err)
	}
	return e
}

// spelled returns an event for spelledOut.
func spelled(task state.TaskKey, detail string, jobs ...string) event.Event {
	return event.Event{Task: task, Via: state.TriggerVia(detail), Payload: event.Conflict{Paths: jobs}}
}

func (s *testStore) mustApply(t *testing.T, e event.Event, ack Ack) Applied {
	t.Helper()
	applied, err := s.Apply(t.Context(), e, ack)
	if err != nil {
		t.Fatal(err)
	}
	return applied
}

// live returns the queued and claimed jobs of a task as "key:state:epoch".
func (s *testStore) live(t *testing.T, task state.TaskKey) string {
	t.Helper()
	jobs, err := s.Jobs(t.Context(), task)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, j := range jobs {
		if j.Post == nil || j.Post.Text != j.Key {
			t.Errorf("job %s has payload %v, want that of key %s", j.ID, j.Post, j.Key)
		}
		all = append(all, fmt.Sprintf("%s:%s:%d", j.Key, j.State, j.Epoch))
	}
	return strings.Join(all, " ")
}

func wantLive(t *testing.T, s *testStore, task state.TaskKey, want string) {
	t.Helper()
	if got := s.live(t, task); got != want {
		t.Errorf("got jobs %q, want %q", got, want)
	}
}

func wantIs(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got error %v, want %v", what, err, want)
	}
}

var (
	task1 = state.TaskKey{Repo: 10, Issue: 1}
	task2 = state.TaskKey{Repo: 10, Issue: 2}
	task3 = state.TaskKey{Repo: 101, Issue: 1}
)

func TestApply(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)

	got := s.mustApply(t, spelled(task1, ""), Ack{})
	if got.Task != nil || got.Changed {
		t.Errorf("nothing to do: got %+v", got)
	}
	got = s.mustApply(t, spelled(task1, "save", "work/a"), Ack{})
	if !got.Changed || got.Task.Version != 1 || got.Task.Key != task1 || got.Note != "save" {
		t.Errorf("new task: got %+v", got)
	}
	got = s.mustApply(t, spelled(task1, "phase=planning"), Ack{})
	if got.Task.Version != 2 || !got.Task.Since.Equal(testStart) {
		t.Errorf("second event: got version %d since %v", got.Task.Version, got.Task.Since)
	}
	got = s.mustApply(t, spelled(task1, "", "work/b"), Ack{})
	if got.Changed || got.Task.Version != 2 {
		t.Errorf("only a job: got %+v", got)
	}
	stored, err := s.Task(t.Context(), task1)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(got.Task, stored); d != "" {
		t.Errorf("the applied and the stored task differ:\n%s", d)
	}
	wantLive(t, s, task1, "a:queued:0 b:queued:0")
	if none, err := s.Task(t.Context(), task2); none != nil || err != nil {
		t.Errorf("missing task: got %v, error %v", none, err)
	}
}

func TestApplyRefuses(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	s.mustApply(t, spelled(task1, "save", "work/a"), Ack{})
	cases := map[string]struct {
		e    event.Event
		ack  Ack
		want error // nil for any
	}{
		"no task":             {e: spelled(state.TaskKey{}, "save")},
		"two things to spend": {e: spelled(task1, "save"), ack: Ack{Delivery: "x", Job: "10-1-1"}},
		"job of another task": {e: spelled(task2, "save"), ack: Ack{Job: "10-1-1", Epoch: 1}},
		"no job id":           {e: spelled(task1, "save"), ack: Ack{Job: "nonsense", Epoch: 1}},
		"unclaimed job":       {e: spelled(task1, "save"), ack: Ack{Job: "10-1-1", Epoch: 0}, want: ErrLeaseLost},
		"unknown job":         {e: spelled(task1, "save"), ack: Ack{Job: "10-1-9", Epoch: 1}, want: ErrLeaseLost},
		"unknown delivery":    {e: spelled(task1, "save"), ack: Ack{Delivery: "x"}, want: ErrSpent},
	}
	for name, c := range cases {
		_, err := s.Apply(t.Context(), c.e, c.ack)
		if err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: got error %v, want %v", name, err, c.want)
		}
	}
	task, err := s.Task(t.Context(), task1)
	if err != nil || task.Version != 1 {
		t.Errorf("a refused event changed the task: version %d, error %v", task.Version, err)
	}
	wantLive(t, s, task1, "a:queued:0")
}

func TestApplyCountsAnOutsideFactOnce(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	e := spelled(task1, "save", "work/a")
	e.ID = "comment:7"
	s.mustApply(t, e, Ack{})
	job := s.mustClaim(t, state.LaneWork)

	// The same fact again, as the outcome of a job: the job is spent, nothing else happens.
	e.Payload = event.Conflict{Paths: []string{"work/b"}}
	got := s.mustApply(t, e, Ack{Job: job.ID, Epoch: job.Epoch})
	if got.Changed || got.Task == nil || got.Task.Version != 1 || got.Note != noteSeen {
		t.Errorf("second time: got %+v", got)
	}
	wantLive(t, s, task1, "")

	// What Next did not take into account may be reported again.
	e.ID, e.Via = "comment:8", ""
	s.mustApply(t, e, Ack{})
	e.Via = "save"
	if got := s.mustApply(t, e, Ack{}); !got.Changed {
		t.Errorf("an event that had changed nothing was dropped: got %+v", got)
	}

	// Only the newest of those of which nothing follows are remembered.
	s.next = func(old *state.Task, _ event.Event, _ machine.Policy) machine.Change {
		after := old.Clone()
		for i := len(after.SeenUntrustedIDs); i < 500; i++ {
			after.SeenUntrustedIDs = append(after.SeenUntrustedIDs, "older:"+strconv.Itoa(i))
		}
		return machine.Change{Task: after}
	}
	for _, id := range []string{"comment:9", "comment:10"} {
		e.ID = id
		s.mustApply(t, e, Ack{})
	}
	task, err := s.Task(t.Context(), task1)
	if err != nil || len(task.SeenUntrustedIDs) != 500 || task.SeenUntrustedIDs[500-1] != e.ID || slices.Contains(task.SeenUntrustedIDs, "comment:7") {
		t.Errorf("got %d seen events, the last %q, error %v", len(task.SeenUntrustedIDs), task.SeenUntrustedIDs[len(task.SeenUntrustedIDs)-1], err)
	}
}

func TestApplyLargeTask(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	for _, size := range []int{900 << 10, 10, 1_000_000, 400 << 10, 800 << 10} {
		got := s.mustApply(t, spelled(task1, fmt.Sprintf("body=%d", size)), Ack{})
		stored, err := s.Task(t.Context(), task1)
		if err != nil || stored.Frozen.Body != noise(size) || stored.Version != got.Task.Version {
			t.Fatalf("task of %d bytes: read %d, error %v", size, len(stored.Frozen.Body), err)
		}
		all, err := s.AllTasks(t.Context(), state.TaskKey{}, 10)
		if err != nil || len(all) != 1 || all[0].Frozen.Body != stored.Frozen.Body {
			t.Errorf("paged read of a task of %d bytes: %d tasks, error %v", size, len(all), err)
		}
		s.wantSound(t) // no part is left behind
	}
	_, err := s.Apply(t.Context(), spelled(task1, "body=1500000"), Ack{})
	wantIs(t, "task of 1.5 MB", err, kv.ErrTooLarge)
}

func TestApplySurvivesReopening(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	s.mustApply(t, spelled(task1, "save pr=5", "work/a", "talk/b"), Ack{})
	job := s.mustClaim(t, state.LaneWork)
	before := s.live(t, task1)
	s.reopen(t)
	wantLive(t, s, task1, before)
	s.mustApply(t, spelled(task1, "save"), Ack{Job: job.ID, Epoch: job.Epoch})
	wantLive(t, s, task1, "b:queued:0")
}

func TestFacts(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	if v, err := s.Fact(t.Context(), "bot"); v != nil || err != nil {
		t.Errorf("unknown fact: got %q, error %v", v, err)
	}
	if err := s.SetFact(t.Context(), "bot", []byte("42")); err != nil {
		t.Fatal(err)
	}
	if v, err := s.Fact(t.Context(), "bot"); string(v) != "42" || err != nil {
		t.Errorf("got fact %q, error %v", v, err)
	}
}
