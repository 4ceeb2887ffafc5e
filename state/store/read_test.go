package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/kv"
	"github.com/errand-bot/errand/state/machine"
)

func taskKeys(tasks []*state.Task) string {
	var all []string
	for _, t := range tasks {
		all = append(all, t.Key.String())
	}
	return strings.Join(all, " ")
}

func TestReads(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	s.mustApply(t, spelled(task1, "phase=planning pr=7"), Ack{})
	s.mustApply(t, spelled(task2, "phase=awaiting_plan_approval"), Ack{})
	s.mustApply(t, spelled(task3, "phase=planning pr=7"), Ack{})
	ended := state.TaskKey{Repo: 10, Issue: 3}
	s.mustApply(t, spelled(ended, "phase=planning"), Ack{})
	s.mustApply(t, spelled(ended, "phase=done"), Ack{})

	list := func(tasks []*state.Task, err error) string {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
		return taskKeys(tasks)
	}
	ctx := t.Context()
	if open, err := s.Overviews(ctx); fmt.Sprint(keysOf(open)) != "[10/1 10/2 101/1]" || err != nil {
		t.Errorf("open: %v, error %v", open, err)
	}
	cases := map[string]struct{ got, want string }{
		"planning":          {list(s.TasksIn(ctx, state.PhasePlanning)), "10/1 101/1"},
		"waiting":           {list(s.TasksIn(ctx, state.PhaseAwaitingPlanApproval, state.PhaseAwaitingPreliminaryApproval)), "10/2"},
		"waiting and done":  {list(s.TasksIn(ctx, state.PhaseDone, state.PhaseAwaitingPlanApproval)), "10/2 10/3"},
		"in no phase":       {list(s.TasksIn(ctx)), ""},
		"all":               {list(s.AllTasks(ctx, state.TaskKey{}, 0)), "10/1 10/2 10/3 101/1"},
		"all, first page":   {list(s.AllTasks(ctx, state.TaskKey{}, 2)), "10/1 10/2"},
		"all, second page":  {list(s.AllTasks(ctx, task2, 2)), "10/3 101/1"},
		"all, behind a gap": {list(s.AllTasks(ctx, state.TaskKey{Repo: 100, Issue: 9}, 2)), "101/1"},
	}
	for name, c := range cases {
		if c.got != c.want {
			t.Errorf("%s: got %q, want %q", name, c.got, c.want)
		}
	}
	counts, err := s.Counts(ctx)
	want := map[state.Phase]int{state.PhasePlanning: 2, state.PhaseAwaitingPlanApproval: 1, state.PhaseDone: 1}
	if d := cmp.Diff(want, counts); d != "" || err != nil {
		t.Errorf("counts: %v\n%s", err, d)
	}

	// A new life brings it back among the open ones.
	s.mustApply(t, spelled(ended, "phase=queued"), Ack{})
	open, err := s.Overviews(ctx)
	if got := fmt.Sprint(keysOf(open)); got != "[10/1 10/2 10/3 101/1]" || err != nil {
		t.Errorf("open after a new life: got %s, error %v", got, err)
	}
}

func TestTaskByPR(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	want := func(repo int64, number int, want string) {
		t.Helper()
		task, err := s.TaskByPR(t.Context(), repo, number)
		got := ""
		if task != nil {
			got = task.Key.String()
		}
		if got != want || err != nil {
			t.Errorf("pull request %d of %d: task %q, %v; want %q", number, repo, got, err, want)
		}
	}
	s.mustApply(t, spelled(task1, "pr=7"), Ack{})
	s.mustApply(t, spelled(task3, "pr=7"), Ack{})
	want(10, 7, "10/1")
	want(101, 7, "101/1")
	want(10, 8, "")
	s.mustApply(t, spelled(task1, "pr=8"), Ack{})
	want(10, 7, "")
	want(10, 8, "10/1")

	// Another task comes upon the same pull request; the first one's leaving does not take it away.
	s.mustApply(t, spelled(task2, "pr=8"), Ack{})
	s.mustApply(t, spelled(task1, "pr=9"), Ack{})
	want(10, 8, "10/2")
	want(10, 9, "10/1")
}

func TestPrune(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	heavy := func(phase state.Phase) {
		s.next = func(old *state.Task, e event.Event, _ machine.Policy) machine.Change {
			return machine.Change{Task: &state.Task{
				TaskPhase: state.TaskPhase{Phase: phase, Since: e.Now}, TaskPlans: state.TaskPlans{Approval: &state.Approval{Hash: "good"},
					Plans:    []state.Plan{{Hash: "old", Text: "old plan"}, {Hash: "good", Text: "good plan"}},
					Feedback: []state.Feedback{{ID: "comment:1"}}},
				TaskIssue:    state.TaskIssue{Context: state.Context{Comments: []state.DiscussionComment{{Body: "words"}}}},
				TaskComments: state.TaskComments{SeenIDs: []string{"comment:1"}},
			}}
		}
	}
	heavy(state.PhaseDone)
	s.mustApply(t, spelled(task1, ""), Ack{})
	heavy(state.PhaseFailed)
	s.mustApply(t, spelled(task2, ""), Ack{})
	s.advance(time.Hour)
	heavy(state.PhaseCancelled)
	s.mustApply(t, spelled(task3, ""), Ack{})

	for _, want := range []int{1, 0} {
		if n, err := s.Prune(t.Context(), s.time()); n != want || err != nil {
			t.Errorf("pruned %d, %v; want %d", n, err, want)
		}
	}
	for key, light := range map[state.TaskKey]bool{task1: true, task2: false, task3: false} {
		task, err := s.Task(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		got := len(task.Context.Comments) == 0 && len(task.Feedback) == 0 && task.Plans[0].Text == ""
		if got != light || task.Plans[1].Text != "good plan" || len(task.SeenIDs) != 1 || task.Version != 1 {
			t.Errorf("task %s after pruning: %+v", key, task)
		}
	}
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	var ran []string
	step := func(name string, err error) migration {
		return migration{doc: name, run: func(context.Context, *Store) error {
			ran = append(ran, name)
			return err
		}}
	}
	boom := errors.New("boom")
	released := len(migrations())
	list := append(migrations(), step("one", nil), step("two", boom))
	for i := range released {
		list[i] = step("released", nil)
	}
	err := s.migrate(t.Context(), list)
	wantIs(t, "second new migration", err, boom)
	list[released+1] = step("two", nil)
	if err := s.migrate(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	if err := s.migrate(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	// Those that were released ran when the store was made; the last one again because it had not come to its end.
	if got := fmt.Sprint(ran); got != "[one two two]" {
		t.Errorf("got migrations %s", got)
	}
	_, err = Open(t.Context(), s.db, Options{})
	wantIs(t, "open a newer store", err, ErrNewerSchema)
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("schema is %d", released+2)) {
		t.Errorf("got error %v has no hint", err)
	}
	err = s.db.Update(t.Context(), func(tx kv.Tx) error { return tx.Put(keySchema, []byte("x")) })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), s.db, Options{}); err == nil {
		t.Error("a store with an unreadable schema was opened")
	}
}

// TestCheck damages a store in every way that Check recognizes.
func TestCheck(t *testing.T) {
	t.Parallel()
	drop := func(key string) func(kv.Tx) error { return func(tx kv.Tx) error { return tx.Delete(key) } }
	set := func(key, value string) func(kv.Tx) error {
		return func(tx kv.Tx) error { return tx.Put(key, []byte(value)) }
	}
	job := `{"id":"10-1-9","task":{"repo":10,"issue":1},"lane":"work","key":"k","state":"%s"}`
	queued, claimed := fmt.Sprintf(job, "queued"), fmt.Sprintf(job, "claimed")
	cases := map[string]struct {
		do   func(kv.Tx) error
		want string
	}{
		"task without index":    {drop("open/10/1"), "open/10/1 is missing"},
		"index without task":    {drop("task/10/1"), "open/10/1 belongs to nothing"},
		"wrong phase":           {set("open/10/1", "done"), "listed as done"},
		"pull request":          {drop("pr/10/7"), "pr/10/7 is missing"},
		"unreadable task":       {set("task/10/1", "{"), "decode task/10/1"},
		"other task":            {set("task/10/1", `{"key":{"repo":10,"issue":2}}`), "holds task 10/2"},
		"payload without job":   {drop("due/job/10/1"), "jobdata/10-1-1 belongs to nothing"},
		"empty queue":           {set("due/job/10/1", "[]"), "empty queue"},
		"job twice":             {set("due/job/10/1", "["+queued+","+claimed+"]"), "job 10-1-9 twice"},
		"key twice":             {set("due/job/10/1", "["+queued+","+queued+"]"), "two queued jobs with key k"},
		"lane twice":            {set("due/job/10/1", "["+claimed+","+claimed+"]"), "two claimed jobs in lane work"},
		"job of another":        {set("due/job/10/2", "["+queued+"]"), "job 10-1-9 of task 10/1"},
		"delivery not listed":   {drop(timeKey(preInbox, testStart, "g")), "is missing"},
		"delivery no payload":   {set(timeKey(preInbox, testStart, "g"), ""), "payload/g is missing"},
		"delivery two payloads": {set("payload/g", "{}"), "payload/g belongs to nothing"},
		"delivery unknown":      {drop("delivery/g"), "/g belongs to nothing"},
		"delivery in no state":  {set("delivery/g", "{}"), "is in state"},
		"delivery not poison":   {set("delivery/g", `{"state":"poison"}`), "poison/"},
		"delivery without tomb": {set("delivery/g", `{"state":"spent"}`), "tomb/"},
		"an unknown key":        {set("rubbish", ""), "rubbish belongs to nothing"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTestStore(t)
			s.mustApply(t, spelled(task1, "save pr=7", "work/a"), Ack{})
			s.putDelivery(t, "g", "{}")
			s.wantSound(t)
			if err := s.db.Update(t.Context(), c.do); err != nil {
				t.Fatal(err)
			}
			problems, err := s.Check(t.Context())
			if err != nil || !strings.Contains(strings.Join(problems, "\n"), c.want) {
				t.Errorf("problems %q, %v; want one with %q", problems, err, c.want)
			}
			s.wipe(t)
		})
	}
}

// wipe empties a store that was damaged on purpose.
func (s *testStore) wipe(t *testing.T) {
	t.Helper()
	err := s.db.Scan(t.Context(), "", "", 0, func(p kv.Pair) error {
		return s.db.Update(t.Context(), func(tx kv.Tx) error { return tx.Delete(p.Key) })
	})
	if err != nil {
		t.Fatal(err)
	}
}

func keysOf(open []state.TaskOverview) (keys []state.TaskKey) {
	for _, g := range open {
		keys = append(keys, g.Key)
	}
	return keys
}
