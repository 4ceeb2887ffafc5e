package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/kv/boltkv"
)

// model is the store as plain maps: the expected contents after each random step. It is an independent implementation
// of the doc comments, without the store's helpers.
type model struct {
	store *Store
	dir   string
	clock time.Time

	versions   map[state.TaskKey]int64
	seen       map[state.TaskKey]map[string]bool
	jobs       map[state.TaskKey][]modelJob // in the order of their creation
	made       map[state.TaskKey]int
	deliveries map[string]string // GUID → pending, spent
	leases     []modelLease      // every claim ever made
}

type modelJob struct {
	id, key string
	lane    state.Lane
	due     time.Time
	claimed bool
	epoch   int64
	until   time.Time
	retried bool
}

type modelLease struct {
	task  state.TaskKey
	id    string
	epoch int64
}

// TestAgainstModel takes random steps through all operations of the store.
func TestAgainstModel(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	rapid.Check(t, func(r *rapid.T) {
		m, closeAll := newModel(r, root)
		defer closeAll()
		r.Repeat(map[string]func(*rapid.T){
			"apply":   m.apply,
			"put":     m.put,
			"claim":   m.claim,
			"finish":  m.finish,
			"retry":   m.retry,
			"rescue":  m.rescue,
			"advance": func(r *rapid.T) { m.clock = m.clock.Add(rapid.SampledFrom(steps).Draw(r, "step")) },
			"":        m.compare,
		})
	})
}

var steps = []time.Duration{time.Second, 10 * time.Second, testLease}

func newModel(r *rapid.T, root string) (*model, func()) {
	dir, err := os.MkdirTemp(root, "model")
	if err != nil {
		r.Fatal(err)
	}
	db, err := boltkv.Open(filepath.Join(dir, "errand.db"), boltkv.Options{CheckRepeatable: true})
	if err != nil {
		r.Fatal(err)
	}
	m := &model{
		dir: dir, clock: testStart, versions: map[state.TaskKey]int64{}, seen: map[state.TaskKey]map[string]bool{},
		jobs: map[state.TaskKey][]modelJob{}, made: map[state.TaskKey]int{}, deliveries: map[string]string{},
	}
	m.store, err = Open(context.Background(), db, Options{Now: func() time.Time { return m.clock }})
	if err != nil {
		r.Fatal(err)
	}
	m.store.next = spelledOut
	return m, func() {
		if err := errors.Join(db.Close(), os.RemoveAll(dir)); err != nil {
			r.Fatal(err)
		}
	}
}

func drawTask(r *rapid.T) state.TaskKey {
	return rapid.SampledFrom([]state.TaskKey{task1, task2}).Draw(r, "task")
}

// drawEvent returns an event with random effects.
func (m *model) drawEvent(r *rapid.T, task state.TaskKey) event.Event {
	detail := rapid.SampledFrom([]string{"", "save", "save drop", "drop"}).Draw(r, "detail")
	id := rapid.SampledFrom([]string{"", "", "c:1", "c:2"}).Draw(r, "id")
	jobs := rapid.SliceOfN(rapid.SampledFrom([]string{
		"work/a", "work/b", "work/c+5s", "status/s", "status/s+10s", "talk/t", "control/u+5s",
	}), 0, 3).Draw(r, "jobs")
	e := spelled(task, detail, jobs...)
	e.ID = id
	return e
}

// follow applies an accepted event to the model.
func (m *model) follow(e event.Event) {
	if m.seen[e.Task][e.ID] {
		return
	}
	if strings.Contains(string(e.Via), "drop") {
		m.jobs[e.Task] = slices.DeleteFunc(m.jobs[e.Task], func(j modelJob) bool { return j.lane == state.LaneWork && !j.claimed })
	}
	for _, spec := range event.Of[event.Conflict](e).Paths {
		m.enqueue(e, spec)
	}
	if !strings.Contains(string(e.Via), "save") {
		return
	}
	m.versions[e.Task]++
	if e.ID != "" {
		if m.seen[e.Task] == nil {
			m.seen[e.Task] = map[string]bool{}
		}
		m.seen[e.Task][e.ID] = true
	}
}

func (m *model) enqueue(e event.Event, spec string) {
	e.Now = m.clock
	job := spelledJob(spec, e)
	list := m.jobs[e.Task]
	for i := range list {
		twin := &list[i]
		if twin.key != job.Key || twin.claimed {
			continue
		}
		if !twin.retried && job.NotBefore.Before(twin.due) {
			twin.due = job.NotBefore
		}
		return
	}
	m.made[e.Task]++
	id := fmt.Sprintf("%d-%d-%d", e.Task.Repo, e.Task.Issue, m.made[e.Task])
	m.jobs[e.Task] = append(list, modelJob{id: id, key: job.Key, lane: job.Lane, due: job.NotBefore})
}

func (m *model) apply(r *rapid.T) {
	e := m.drawEvent(r, drawTask(r))
	ack := Ack{}
	if rapid.Bool().Draw(r, "with delivery") {
		ack.Delivery = drawGUID(r)
	}
	_, err := m.store.Apply(context.Background(), e, ack)
	if ack.Delivery != "" && m.deliveries[ack.Delivery] != "pending" {
		if !errors.Is(err, ErrSpent) {
			r.Fatalf("delivery that is not pending: got error %v", err)
		}
		return
	}
	if err != nil {
		r.Fatal(err)
	}
	if ack.Delivery != "" {
		m.deliveries[ack.Delivery] = "spent"
	}
	m.follow(e)
}

func drawGUID(r *rapid.T) string {
	return rapid.SampledFrom([]string{"g1", "g2", "g3"}).Draw(r, "guid")
}

func (m *model) put(r *rapid.T) {
	guid := drawGUID(r)
	isNew, err := m.store.PutDelivery(context.Background(), Delivery{GUID: guid, Payload: []byte(guid)})
	_, known := m.deliveries[guid]
	if err != nil || isNew == known {
		r.Fatalf("put %s: new %v, error %v", guid, isNew, err)
	}
	if isNew {
		m.deliveries[guid] = "pending"
	}
}

// claimable returns the jobs that can be claimed now: at most one for each task and lane.
func (m *model) claimable() map[string]bool {
	ids := map[string]bool{}
	for _, list := range m.jobs {
		closed := map[state.Lane]bool{}
		for _, j := range list {
			closed[j.lane] = closed[j.lane] || j.claimed
		}
		for _, j := range list {
			if closed[j.lane] {
				continue
			}
			if !j.due.After(m.clock) {
				ids[j.id] = true
				closed[j.lane] = true
			}
			if j.retried && (j.lane == state.LaneWork || j.lane == state.LaneStatus) {
				closed[j.lane] = true
			}
		}
	}
	return ids
}

func (m *model) claim(r *rapid.T) {
	want := m.claimable()
	lease := func(state.JobKind) time.Duration { return testLease }
	job, err := m.store.Claim(context.Background(), ClaimReq{Lease: lease})
	if err != nil {
		r.Fatal(err)
	}
	if job == nil {
		if len(want) > 0 {
			r.Fatalf("nothing was claimed, although %v could be", want)
		}
		return
	}
	if !want[job.ID] || job.Post == nil || job.Post.Text != job.Key {
		r.Fatalf("claimed %+v, want one of %v", job, want)
	}
	j := m.find(job.Task, job.ID)
	j.claimed, j.retried, j.until = true, true, m.clock.Add(testLease)
	j.epoch++
	m.leases = append(m.leases, modelLease{job.Task, job.ID, job.Epoch})
}

func (m *model) find(task state.TaskKey, id string) *modelJob {
	list := m.jobs[task]
	if i := slices.IndexFunc(list, func(j modelJob) bool { return j.id == id }); i >= 0 {
		return &list[i]
	}
	return nil
}

// drawLease returns a lease that was once claimed, and its job if it still is.
func (m *model) drawLease(r *rapid.T) (modelLease, *modelJob) {
	if len(m.leases) == 0 {
		r.Skip("no lease yet")
	}
	l := rapid.SampledFrom(m.leases).Draw(r, "lease")
	j := m.find(l.task, l.id)
	if j != nil && (!j.claimed || j.epoch != l.epoch) {
		j = nil
	}
	return l, j
}

func (m *model) finish(r *rapid.T) {
	l, j := m.drawLease(r)
	e := m.drawEvent(r, l.task)
	_, err := m.store.Apply(context.Background(), e, Ack{Job: l.id, Epoch: l.epoch})
	if j == nil {
		if !errors.Is(err, ErrLeaseLost) {
			r.Fatalf("lost lease %+v: got error %v", l, err)
		}
		return
	}
	if err != nil {
		r.Fatal(err)
	}
	m.jobs[l.task] = slices.DeleteFunc(m.jobs[l.task], func(j modelJob) bool { return j.id == l.id })
	m.follow(e)
}

func (m *model) retry(r *rapid.T) {
	l, j := m.drawLease(r)
	at := m.clock.Add(rapid.SampledFrom(steps).Draw(r, "delay"))
	err := m.store.Retry(context.Background(), l.id, l.epoch, state.Failed{Error: "boom", Retry: at})
	if j == nil {
		if !errors.Is(err, ErrLeaseLost) {
			r.Fatalf("lost lease %+v: got error %v", l, err)
		}
		return
	}
	if err != nil {
		r.Fatal(err)
	}
	m.giveBack(l.task, l.id).due = at
}

// giveBack returns a claimed job to the queue and drops the one that was queued under its key meanwhile.
func (m *model) giveBack(task state.TaskKey, id string) *modelJob {
	key := m.find(task, id).key
	m.jobs[task] = slices.DeleteFunc(m.jobs[task], func(j modelJob) bool { return j.key == key && !j.claimed })
	j := m.find(task, id)
	j.claimed = false
	return j
}

func (m *model) rescue(r *rapid.T) {
	want := 0
	for task, list := range m.jobs {
		for _, j := range slices.Clone(list) {
			if j.claimed && !j.until.After(m.clock) {
				m.giveBack(task, j.id).epoch++
				want++
			}
		}
	}
	if n, err := m.store.Rescue(context.Background(), m.clock); n != want || err != nil {
		r.Fatalf("rescued %d, %v; want %d", n, err, want)
	}
}

// compare compares the store with the model.
func (m *model) compare(r *rapid.T) {
	ctx := context.Background()
	for _, key := range []state.TaskKey{task1, task2} {
		task, err := m.store.Task(ctx, key)
		version := int64(0)
		if task != nil {
			version = task.Version
		}
		if err != nil || version != m.versions[key] {
			r.Fatalf("task %s is at version %d, %v; want %d", key, version, err, m.versions[key])
		}
		jobs, err := m.store.Jobs(ctx, key)
		if err != nil || len(jobs) != len(m.jobs[key]) {
			r.Fatalf("task %s has jobs %+v, %v; want %+v", key, jobs, err, m.jobs[key])
		}
		for i, want := range m.jobs[key] {
			got := modelJob{
				id: jobs[i].ID, key: jobs[i].Key, lane: jobs[i].Lane, due: jobs[i].NotBefore, until: want.until,
				claimed: jobs[i].State == state.JobClaimed, epoch: jobs[i].Epoch, retried: jobs[i].Attempt > 0,
			}
			if got != want {
				r.Fatalf("job %d of task %s is %+v, want %+v", i, key, got, want)
			}
		}
	}
	m.compareInbox(ctx, r)
	if problems, err := m.store.Check(ctx); len(problems) > 0 || err != nil {
		r.Fatalf("store is not sound: %q, %v", problems, err)
	}
}

func (m *model) compareInbox(ctx context.Context, r *rapid.T) {
	pending, err := m.store.PendingDeliveries(ctx, 0)
	if err != nil {
		r.Fatal(err)
	}
	got := map[string]bool{}
	for _, d := range pending {
		got[d.GUID] = string(d.Payload) == d.GUID
	}
	want := map[string]bool{}
	for guid, state := range m.deliveries {
		if state == "pending" {
			want[guid] = true
		}
	}
	if !maps.Equal(got, want) {
		r.Fatalf("pending deliveries are %v, want %v", got, want)
	}
}
