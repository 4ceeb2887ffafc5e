package watch_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/archive"
	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/internal/watch"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// fakeVM simulates a run on its VM: a growing log, and connections that can be cut.
type fakeVM struct {
	mu     sync.Mutex
	log    []runlog.Record
	grown  chan struct{} // closed when the log grew or a connection was cut
	cuts   int
	broken error   // error of every new connection
	from   []int64 // start line of each connection
}

var (
	errCut  = errors.New("connection reset")
	errGone = errors.New("no such VM")
)

func newFakeVM() *fakeVM { return &fakeVM{grown: make(chan struct{})} }

func (v *fakeVM) change(f func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	f()
	close(v.grown)
	v.grown = make(chan struct{})
}

// says appends lines.
func (v *fakeVM) says(texts ...string) {
	v.change(func() {
		for _, s := range texts {
			v.log = append(v.log, runlog.Record{Line: &runlog.Line{Seq: int64(len(v.log) + 1), Stream: runlog.StreamStdout, Text: s}})
		}
	})
}

func (v *fakeVM) exits() {
	v.change(func() { v.log = append(v.log, runlog.Record{Exit: &runlog.Exit{Cause: runlog.CauseExited}}) })
}

func (v *fakeVM) cut() { v.change(func() { v.cuts++ }) }

func (v *fakeVM) follow(_ context.Context, name, _ string, from int64) (watch.Records, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.from = append(v.from, from)
	if v.broken != nil {
		return nil, fmt.Errorf("reach VM %s: %w", name, v.broken)
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &records{v: v, at: int(from), cuts: v.cuts, ctx: ctx, cancel: cancel}, nil
}

// connections returns the start line of each connection.
func (v *fakeVM) connections() []int64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return append([]int64(nil), v.from...)
}

type records struct {
	v      *fakeVM
	at     int
	cuts   int
	ctx    context.Context
	cancel context.CancelFunc
}

func (r *records) Next() (runlog.Record, error) {
	for {
		r.v.mu.Lock()
		grown := r.v.grown
		if r.v.cuts != r.cuts {
			r.v.mu.Unlock()
			return runlog.Record{}, errCut
		}
		if r.at < len(r.v.log) {
			rec := r.v.log[r.at]
			r.at++
			r.v.mu.Unlock()
			return rec, nil
		}
		r.v.mu.Unlock()
		select {
		case <-grown:
		case <-r.ctx.Done():
			return runlog.Record{}, io.EOF
		case <-time.After(3 * time.Second): // the runner's heartbeat
			return runlog.Record{Alive: true}, nil
		}
	}
}

func (r *records) Close() error { r.cancel(); return nil }

// fakeInterpreter makes one event of each line and counts the lines as the result.
type fakeInterpreter struct{ lines []string }

func (p *fakeInterpreter) Line(l runlog.Line) []runlog.Event {
	p.lines = append(p.lines, l.Text)
	if l.Text == "start" {
		return []runlog.Event{{Kind: runlog.KindStarted, Session: "s-1", Model: "m"}}
	}
	if list := toolEvents(l.Text); list != nil {
		return list
	}
	return []runlog.Event{{Kind: runlog.KindText, Text: l.Text}}
}

func (p *fakeInterpreter) Exit(x runlog.Exit) state.RunResult {
	return state.RunResult{Class: state.RunSucceeded, Status: state.StatusOK, Outcome: "build", Text: fmt.Sprint(p.lines), Session: "s-1", Ended: x.EndedAt}
}

// supervision is a supervisor with a real store and real transcripts.
type supervision struct {
	*storeWorld
	v      *fakeVM
	files  *archive.Dir
	tether error
	full   atomic.Int32 // number of further transcript writes that fail
}

func newSupervision(t *testing.T) *supervision {
	t.Helper()
	files, err := archive.Open(t.TempDir(), func(s string) string { return s })
	check(t, err)
	return &supervision{storeWorld: newLife(t), v: newFakeVM(), files: files}
}

// supervise starts a supervisor, as errand does when it starts.
func (d *supervision) supervise() (stop func()) {
	s := watch.NewSupervisor(watch.SupervisorConfig{
		Store: d.storeWorld, Follow: d.v.follow, Gone: func(err error) bool { return errors.Is(err, errGone) }, Now: time.Now,
		Tether:    func(context.Context, *state.Task) error { return d.tether },
		Interpret: func(*state.Task, *state.Run) watch.Interpreter { return &fakeInterpreter{} },
		Transcripts: func(run string) (watch.Transcript, error) {
			t, err := d.files.Transcript(run)
			return fullDisk{t, d}, err
		},
	})
	stop = watching(d.t, s.Run)
	d.t.Cleanup(stop)
	return stop
}

// transcript returns the stored lines of a run.
func (d *supervision) transcript(run string) []string {
	d.t.Helper()
	f, err := d.files.OpenTranscript(run)
	check(d.t, err)
	defer func() { check(d.t, f.Close()) }()
	var out []string
	_, err = runlog.ReadTranscript(f, func(e runlog.Entry) error {
		if e.Line != nil {
			out = append(out, fmt.Sprintf("%d %s", e.Line.Seq, e.Line.Text))
		}
		return nil
	})
	check(d.t, err)
	return out
}

// ends returns the final records in a run's transcript.
func (d *supervision) ends(run string) []runlog.End {
	d.t.Helper()
	f, err := d.files.OpenTranscript(run)
	check(d.t, err)
	defer func() { check(d.t, f.Close()) }()
	var out []runlog.End
	_, err = runlog.ReadTranscript(f, func(e runlog.Entry) error {
		if e.End != nil {
			out = append(out, *e.End)
		}
		return nil
	})
	check(d.t, err)
	return out
}

// begin starts a run with its transcript.
func (d *supervision) begin() *state.Run {
	d.t.Helper()
	t := d.running(task, 7)
	check(d.t, d.files.BeginTranscript(t.Run.ID, runlog.Header{Run: t.Run.ID}))
	return t.Run
}

func TestRunIsFollowedToItsEnd(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newSupervision(t)
		run := d.begin()
		d.supervise()
		d.v.says("start", "one")
		advance(time.Second)
		d.v.says("two")
		advance(6 * time.Second)
		if r := d.task().Run; r.Session != "s-1" || r.LastSeq != 3 || r.Doing != "two" || r.Turns != 2 || r.LastActivity.IsZero() {
			t.Errorf("got activity updates %+v", r)
		}
		d.v.exits()
		advance(time.Second)
		got := d.task()
		if got.Run != nil || len(got.Runs) != 1 || got.Phase != state.PhaseAwaitingPreliminaryApproval || got.NewestPlan().Text != "[start one two]" {
			t.Errorf("after the end: phase %s, run %+v, plan %+v", got.Phase, got.Run, got.NewestPlan())
		}
		if diff := cmp.Diff([]string{"1 start", "2 one", "3 two"}, d.transcript(run.ID)); diff != "" {
			t.Errorf("transcript (-want +got):\n%s", diff)
		}
		if n := len(d.reported(event.KindRunEnded)); n != 1 {
			t.Errorf("got %d reports of the end, want 1", n)
		}
		ends := d.ends(run.ID)
		if len(ends) != 1 {
			t.Fatalf("got ends %+v in the transcript", ends)
		}
		e := ends[0]
		if e.Task != got.Repo.FullName()+"#"+strconv.Itoa(got.Key.Issue) || e.Run != run.ID || e.VM != got.Runs[0].VM || e.Step != string(run.Kind) || e.Iteration != 1 {
			t.Errorf("got record %+v", e)
		}
		if e.Start.IsZero() || e.Cause != runlog.CauseExited || e.Class != runlog.ClassSuccess || e.Error != "" {
			t.Errorf("got end %+v", e)
		}
	})
}

func TestProgressUpdatesAreLimited(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newSupervision(t)
		d.begin()
		d.supervise()
		for n := range 300 {
			d.v.says(fmt.Sprint("line ", n))
			advance(100 * time.Millisecond)
		}
		if n := len(d.reported(event.KindProgress)); n < 5 || n > 7 {
			t.Errorf("got %d activity updates in 30 s of 300 lines, want about one in 5 s", n)
		}
	})
}

func TestLostConnectionIsResumed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newSupervision(t)
		run := d.begin()
		d.supervise()
		d.v.says("start", "one")
		advance(time.Second)
		d.v.cut()
		d.v.says("two")
		advance(time.Minute)
		d.v.change(func() { d.v.cuts++; d.v.broken = errCut })
		d.v.says("three")
		advance(5 * time.Minute) // shorter than the limit for unreachable VMs
		d.v.change(func() { d.v.broken = nil })
		advance(30 * time.Second)
		d.v.exits()
		advance(time.Second)
		if diff := cmp.Diff([]string{"1 start", "2 one", "3 two", "4 three"}, d.transcript(run.ID)); diff != "" {
			t.Errorf("transcript (-want +got):\n%s", diff)
		}
		if p := d.task().NewestPlan(); p == nil || p.Text != "[start one two three]" {
			t.Errorf("got plan %+v", p)
		}
		from := d.v.connections()
		if from[0] != 0 || from[1] != 2 || from[2] != 3 || from[len(from)-1] != 3 || len(from) > 100 {
			t.Errorf("got connections after lines %v", from)
		}
	})
}

// TestRestartKeepsTranscriptComplete: a new supervisor reads the log from its first line, because the interpreter needs all
// lines, and the transcript has each line once.
func TestRestartKeepsTranscriptComplete(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newSupervision(t)
		run := d.begin()
		stop := d.supervise()
		d.v.says("start", "one")
		advance(time.Second)
		stop()
		d.v.says("two")
		d.v.exits()
		advance(time.Hour)
		d.supervise()
		advance(time.Second)
		if diff := cmp.Diff([]string{"1 start", "2 one", "3 two"}, d.transcript(run.ID)); diff != "" {
			t.Errorf("transcript (-want +got):\n%s", diff)
		}
		if p := d.task().NewestPlan(); p == nil || p.Text != "[start one two]" {
			t.Errorf("got plan %+v", p)
		}
		if diff := cmp.Diff([]int64{0, 0}, d.v.connections()); diff != "" {
			t.Errorf("connections (-want +got):\n%s", diff)
		}
	})
}

func TestLostVMIsReported(t *testing.T) {
	for name, c := range map[string]struct {
		bend  func(d *supervision)
		after time.Duration // the loss is reported before this time
		not   time.Duration // and not before this time
	}{
		"gone":          {func(d *supervision) { d.v.change(func() { d.v.cuts++; d.v.broken = errGone }) }, 5 * time.Second, 0},
		"unreachable":   {func(d *supervision) { d.v.change(func() { d.v.cuts++; d.v.broken = errCut }) }, 11 * time.Minute, 9 * time.Minute},
		"tether closed": {func(d *supervision) { d.v.change(func() { d.tether = errGone; d.v.cuts++ }) }, 5 * time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				d := newSupervision(t)
				d.begin()
				d.supervise()
				d.v.says("start")
				advance(time.Second)
				c.bend(d)
				advance(c.not)
				if c.not > 0 && d.task().Phase != state.PhasePreliminaryPlanning {
					t.Errorf("got a report of a lost VM within %s, want none", c.not)
				}
				advance(c.after - c.not)
				got := d.task()
				if got.Phase != state.PhaseInterrupted || len(got.Runs) != 1 || got.Runs[0].Status != state.StatusVMLost || got.VM != nil {
					t.Errorf("phase %s, runs %+v, VM %+v", got.Phase, got.Runs, got.VM)
				}
			})
		})
	}
}

// TestSilentRunIsNotLost: a run may be silent for longer than a VM may be unreachable; a lost connection after that
// does not mean that the VM is lost.
func TestSilentRunIsNotLost(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newSupervision(t)
		d.begin()
		d.supervise()
		d.v.says("start")
		advance(time.Hour)
		d.v.cut()
		advance(time.Minute)
		if got := d.task(); got.Phase != state.PhasePreliminaryPlanning || got.Run == nil {
			t.Fatalf("phase %s after one cut", got.Phase)
		}
		d.v.exits()
		advance(time.Second)
		if got := d.task(); got.Phase != state.PhaseAwaitingPreliminaryApproval {
			t.Errorf("phase %s after the end", got.Phase)
		}
	})
}

// TestSupersededRunIsNotFollowed: the log of a stopped run is not followed further.
func TestSupersededRunIsNotFollowed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newSupervision(t)
		run := d.begin()
		d.supervise()
		d.v.says("start")
		advance(time.Second)
		d.happen(event.Event{By: ada, Permission: state.PermissionWrite, Payload: event.Commented{Comment: &state.Comment{ID: 1, Mention: true}, Orders: []state.Order{{Verb: state.VerbCancel}}}})
		d.v.cut()
		advance(time.Minute)
		if n := len(d.v.connections()); n > 1 {
			t.Errorf("got %d connections, want none after the run was superseded", n)
		}
		if got := d.task(); got.Phase != state.PhaseCancelled {
			t.Errorf("phase %s", got.Phase)
		}
		if got := d.transcript(run.ID); len(got) != 1 {
			t.Errorf("transcript %v", got)
		}
		got := d.ends(run.ID)
		if len(got) != 1 || got[0].Error != "interrupted" || got[0].Cause != runlog.CauseLost || !strings.Contains(got[0].Message, "ada") {
			t.Errorf("ends %+v, want one that says who stopped it", got)
		}
	})
}
