package bench

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/admin"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/kv"
	"github.com/errand-bot/errand/state/kv/boltkv"
	"github.com/errand-bot/errand/state/settings"
	"github.com/errand-bot/errand/state/store"
)

// The number of tasks in a full store.
const (
	openTasks  = 10_000
	endedTasks = 100_000
)

// BenchmarkFullStore makes a store of 10,000 open and 100,000 ended tasks and measures the operations that must stay
// fast in it. Each figure is of one operation, the first of its kind unless stated otherwise.
func BenchmarkFullStore(b *testing.B) {
	path := filepath.Join(b.TempDir(), "errand.db")
	fill(b, path)
	info, err := os.Stat(path)
	check(b, err)
	debug.FreeOSMemory()
	before := resident(b)
	for b.Loop() {
		begun := time.Now()
		db, err := boltkv.Open(path, boltkv.Options{})
		check(b, err)
		s, err := store.Open(b.Context(), db, store.Options{})
		check(b, err)
		figure(b, "start with %d open and %d ended tasks: %s (at most 2 s); the file has %d MB", openTasks, endedTasks, ms(begun), info.Size()>>20)
		pages, err := admin.New(admin.Config{Store: s, Open: true, Log: zerolog.New(os.Stderr), Now: time.Now})
		check(b, err)
		begun = time.Now()
		check(b, pages.Warm(b.Context()))
		figure(b, "reading every task for the pages, which begins at the start: %s", ms(begun))
		figure(b, "/status.json, the first request after that, while ended tasks are still being read: %s (at most 200 ms)", requestStatus(b, pages))
		figure(b, "/status.json afterwards: %s (at most 200 ms)", requestStatus(b, pages))
		figure(b, "a pass over the open tasks that reads none of them (the poller's, when nothing has changed): %s", scanOpenTasks(b, s, false))
		figure(b, "a pass that reads all of them (the sweep's, every 15 minutes, and the first one after the start): %s", scanOpenTasks(b, s, true))
		figure(b, "the data of all tasks that a webhook needs, the first time: %s", readHandlerData(b, s))
		figure(b, "the same afterwards: %s", readHandlerData(b, s))
		begun = time.Now()
		n, err := s.Prune(b.Context(), time.Now())
		check(b, err)
		figure(b, "one pass of pruning (once a minute): %s for %d tasks", ms(begun), n)
		for n > 0 {
			n, err = s.Prune(b.Context(), time.Now())
			check(b, err)
		}
		begun = time.Now()
		_, err = s.Prune(b.Context(), time.Now())
		check(b, err)
		figure(b, "pruning again, with nothing left to prune: %s", ms(begun))
		crowd(b, s)
		debug.FreeOSMemory()
		figure(b, "resident memory that it adds to the process: %d MB (at most 150 MB)", (resident(b)-before)>>20)
		check(b, db.Close())
	}
}

func ms(since time.Time) time.Duration { return time.Since(since).Round(100 * time.Microsecond) }

// requestStatus requests the status as a browser does.
func requestStatus(b *testing.B, pages http.Handler) time.Duration {
	b.Helper()
	begun := time.Now()
	r := httptest.NewRequest(http.MethodGet, "/status.json", nil)
	r.Host = "127.0.0.1"
	for range 20 { // a request that takes too long is aborted, and the next one continues
		w := httptest.NewRecorder()
		if pages.ServeHTTP(w, r); w.Code == http.StatusOK {
			return ms(begun)
		}
	}
	b.Fatal("no answer")
	return 0
}

// readHandlerData reads the data that the webhook handlers need.
func readHandlerData(b *testing.B, s *store.Store) time.Duration {
	b.Helper()
	begun := time.Now()
	open, err := s.Overviews(b.Context())
	check(b, err)
	if len(open) != openTasks {
		b.Fatalf("%d open tasks", len(open))
	}
	return ms(begun)
}

// scanOpenTasks iterates over the open tasks.
func scanOpenTasks(b *testing.B, s *store.Store, load bool) time.Duration {
	b.Helper()
	begun := time.Now()
	n := 0
	check(b, s.EachOpen(b.Context(), func(l store.Listed) error {
		n++
		if !load {
			return nil
		}
		_, err := l.Load()
		return err
	}))
	if n != openTasks {
		b.Fatalf("%d open tasks", n)
	}
	return ms(begun)
}

// crowd applies an event to each of a thousand tasks concurrently.
func crowd(b *testing.B, s *store.Store) {
	b.Helper()
	const many = 1000
	took := make([]time.Duration, many)
	var group sync.WaitGroup
	begun := time.Now()
	for i := range many {
		group.Go(func() {
			e := event.Event{Task: state.TaskKey{Repo: 1, Issue: 1 + i}, Payload: event.PRClosed{Merged: true}}
			if applied, err := s.Apply(b.Context(), e, store.Ack{}); err != nil || !applied.Changed {
				b.Errorf("apply: %+v, %v", applied, err)
			}
			took[i] = time.Since(begun)
		})
	}
	group.Wait()
	all := time.Since(begun)
	slices.Sort(took)
	figure(b, "an event for each of 1000 tasks, concurrently: %.0f/s; p50 %s, p99 %s, the last after %s",
		many/all.Seconds(), took[many/2].Round(time.Millisecond), took[many*99/100].Round(time.Millisecond), took[many-1].Round(time.Millisecond))
}

// resident returns the resident memory of the process.
func resident(b *testing.B) int64 {
	b.Helper()
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Logf("resident memory cannot be read here: %v", err)
		return 0
	}
	m := regexp.MustCompile(`(?m)^RssAnon:\s+(\d+) kB`).FindSubmatch(data) // without the mapped file
	if m == nil {
		return 0
	}
	kB, err := strconv.ParseInt(string(m[1]), 10, 64)
	check(b, err)
	return kB << 10
}

// fill writes the tasks as package state does, but in large transactions, because one event at a time would take an
// hour.
func fill(b *testing.B, path string) {
	b.Helper()
	db, err := boltkv.Open(path, boltkv.Options{})
	check(b, err)
	_, err = store.Open(b.Context(), db, store.Options{}) // migrates to the current schema
	check(b, err)
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest))
	check(b, err)
	const chunk = 45 // two writes each; an update may have a hundred
	var next atomic.Int64
	var group sync.WaitGroup
	for range 32 {
		group.Go(func() {
			for from := int(next.Add(chunk)) - chunk; from < openTasks+endedTasks; from = int(next.Add(chunk)) - chunk {
				rows := map[string][]byte{}
				for n := from; n < min(from+chunk, openTasks+endedTasks); n++ {
					t := sampleTask(n)
					data, err := json.Marshal(t)
					if err != nil {
						b.Error(err)
						return
					}
					rows["task/"+t.Key.String()] = enc.EncodeAll(data, []byte{1})
					index := "open/"
					if t.Ended() {
						index = "ended/"
					}
					rows[index+t.Key.String()] = []byte(t.Phase)
				}
				err := db.Update(b.Context(), func(tx kv.Tx) error {
					for k, v := range rows {
						if err := tx.Put(k, v); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	check(b, db.Close())
}

// sampleTask returns a task with the usual content: two plans, six runs and comments by people.
func sampleTask(n int) *state.Task {
	at := time.Date(2026, 1, 1, 0, 0, n, 0, time.UTC)
	who := state.Person{ID: 7, Login: "ada"}
	text := strings.Repeat(fmt.Sprintf("Step %d: the slug of %x ends in a hyphen, which it should not. ", n, n*2654435761), 30)
	t := &state.Task{
		Key: state.TaskKey{Repo: 1, Issue: 1 + n}, Version: 60, Visible: 40, Gen: 1, TaskIssue: state.TaskIssue{Installation: 12, IssueNode: fmt.Sprintf("I_%d", n), Author: who,
			Repo:     state.Repo{ID: 1, Owner: "acme", Name: "slug", DefaultBranch: "main"},
			Settings: settings.Default(), Trigger: state.Trigger{By: who, Via: "assigned", At: at},
			Frozen: state.Frozen{Title: "Slugs end in a hyphen", Body: text[:800], Hash: state.FreezeHash("Slugs", text), By: who, At: at}}, TaskPhase: state.TaskPhase{Phase: state.PhasePROpen, Since: at}, TaskRuns: state.TaskRuns{RunSeq: 6},
		TaskChanges:  state.TaskChanges{PR: &state.PR{Number: 1_000_000 + n, Title: "Mend it"}},
		TaskComments: state.TaskComments{Status: state.StatusComment{Comment: int64(n), Shown: 40, At: at}},
	}
	t.Context.Comments = []state.DiscussionComment{{ID: 1, By: who, At: at, Body: text[:500]}}
	for i, kind := range []state.PlanKind{state.PlanPreliminary, state.PlanThorough} {
		t.Plans = append(t.Plans, state.Plan{Kind: kind, Revision: 1, Hash: fmt.Sprintf("%08x", n*2+i), Text: text, Comment: int64(n*2 + i), CommentNode: fmt.Sprintf("IC_%d", n*2+i), PostedAt: at})
	}
	for i := range 6 {
		t.Runs = append(t.Runs, state.Run{ID: fmt.Sprintf("1-%d-%d", n, i), Kind: state.RunPlan, State: state.RunEnded, Seq: i, Started: at, Ended: at, RunVerdict: state.RunVerdict{Status: "done", Class: "success"}})
		t.History = append(t.History, state.PhaseChange{Phase: state.PhasePlanning, At: at, Reason: "@ada approved the plan"})
	}
	if n >= openTasks {
		t.Phase = state.PhaseDone
	}
	return t
}
