package watch

import (
	"cmp"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/state"
)

// Records is a run's log as it grows. Next returns io.EOF after the exit.
type Records interface {
	Next() (runlog.Record, error)
	Close() error
}

// Interpreter makes events and a judgement of one run's lines. It sees every line from the first.
type Interpreter interface {
	Line(l runlog.Line) []runlog.Event
	Exit(x runlog.Exit) state.RunResult
}

// Transcript keeps what a run said. Add drops lines that it has already, by number. End takes what
// became of the run, and may be repeated.
type Transcript interface {
	Add(l runlog.Line, events []runlog.Event) error
	End(e runlog.End) error
	Close() error
}

// SupervisorConfig configures a Supervisor. Zero durations mean the defaults in parentheses.
type SupervisorConfig struct {
	Store interface {
		Reader
		Applier
	}
	// Follow opens a run's log after line from. Gone reports whether an error of it means that the
	// VM will not come back.
	Follow func(ctx context.Context, vm, run string, from int64) (Records, error)
	Gone   func(error) bool
	// Tether has the VM's way out open while the run goes on.
	Tether      func(ctx context.Context, t *state.Task) error
	Interpret   func(t *state.Task, r *state.Run) Interpreter
	Transcripts func(run string) (Transcript, error)
	Log         zerolog.Logger
	Now         func() time.Time
	Every       time.Duration // between two signs of life in the store (5 s)
	GiveUp      time.Duration // a VM that cannot be reached for so long is lost (10 min)
}

// Supervisor follows every active run until its end, also over restarts of errand and cut
// connections: the run goes on without us, and its log is read on from where we were.
type Supervisor struct {
	cfg SupervisorConfig
	mu  sync.Mutex
	on  map[string]bool // runs that are being followed
}

// NewSupervisor returns a Supervisor.
func NewSupervisor(cfg SupervisorConfig) *Supervisor {
	if cfg.Every == 0 {
		cfg.Every = 5 * time.Second
	}
	if cfg.GiveUp == 0 {
		cfg.GiveUp = 10 * time.Minute
	}
	return &Supervisor{cfg: cfg, on: map[string]bool{}}
}

// Run follows runs until ctx ends.
func (s *Supervisor) Run(ctx context.Context) error {
	wake := s.cfg.Store.Wake(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		tasks, err := s.cfg.Store.TasksIn(ctx, state.PhasePreliminaryPlanning, state.PhasePlanning, state.PhaseImplementing, state.PhaseAddressingReview)
		if err != nil && ctx.Err() == nil {
			s.cfg.Log.Error().Err(err).Msg("list active runs")
		}
		for _, t := range tasks {
			if t.Run == nil || t.Run.State != state.RunActive || !s.take(t.Run.ID) {
				continue
			}
			wg.Go(func() {
				defer s.drop(t.Run.ID)
				s.follow(ctx, t)
			})
		}
		if !pause(ctx, 5*time.Second, wake) {
			return nil
		}
	}
}

func (s *Supervisor) take(run string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.on[run] {
		return false
	}
	s.on[run] = true
	return true
}

func (s *Supervisor) drop(run string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.on, run)
}

// Follows reports whether a run is being followed: whoever follows it also ends its transcript.
func (s *Supervisor) Follows(run string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.on[run]
}

// follow reads a run to its end and reports it.
func (s *Supervisor) follow(ctx context.Context, t *state.Task) {
	f, err := s.Follow(t)
	if err != nil {
		s.cfg.Log.Error().Err(err).Str("run", t.Run.ID).Msg("open the transcript")
		return
	}
	defer f.Close()
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = 200*time.Millisecond, 15*time.Second
	for ctx.Err() == nil && !f.Step(ctx) {
		if !pause(ctx, b.NextBackOff(), nil) {
			return
		}
	}
}

// following is one run being followed.
type following struct {
	s          *Supervisor
	task       state.TaskKey
	run        string
	in         Interpreter
	transcript Transcript
	last       int64 // last line in the transcript
	// pending is what the interpreter made of its last line, number seen, until the transcript has it.
	seen     int64
	pending  []runlog.Event
	lastOK   time.Time
	told     time.Time // when the store last heard of it
	progress state.Progress
}

// errTold says that the run's end is in the store.
var errTold = errors.New("told")

// read follows the run over one connection. ended says that its end is in the store.
func (f *following) read(ctx context.Context, t *state.Task) (ended bool, err error) {
	if err := f.s.cfg.Tether(ctx, t); err != nil {
		return false, err
	}
	rec, err := f.s.cfg.Follow(ctx, t.Run.VM, f.run, f.last)
	if err != nil {
		return false, err
	}
	defer func() { _ = rec.Close() }()
	for {
		r, err := rec.Next()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return false, err
		}
		f.lastOK = f.s.cfg.Now()
		if err := f.record(ctx, r); err != nil {
			return errors.Is(err, errTold), err
		}
	}
}

// record takes one record in.
func (f *following) record(ctx context.Context, r runlog.Record) error {
	switch {
	case r.Line != nil:
		if r.Line.Seq <= f.last {
			return nil
		}
		if r.Line.Seq > f.seen { // else the transcript could not be written before
			f.seen, f.pending = r.Line.Seq, f.in.Line(*r.Line)
		}
		events := f.pending
		if err := f.transcript.Add(*r.Line, events); err != nil {
			return err
		}
		f.last, f.pending = r.Line.Seq, nil
		f.debug(events)
		f.note(events)
		return f.tell(ctx, false)
	case r.Exit != nil:
		return f.end(ctx, *r.Exit, f.in.Exit(*r.Exit))
	}
	return f.tell(ctx, false)
}

// maxDebug bounds what the log shows of one event, in characters; the transcript has all of it.
const maxDebug = 200

// debug logs what the agent does, for operators who ask for that.
func (f *following) debug(events []runlog.Event) {
	for i := range events {
		e := &events[i]
		f.s.cfg.Log.Debug().Str("task", f.task.String()).Str("run", f.run).Int64("seq", e.Seq).Str("kind", string(e.Kind)).Str("tool", e.ToolName).
			Str("text", runlog.Cut(e.Text, maxDebug)).Msg("agent")
	}
}

// note keeps what people may want to see of some events.
func (f *following) note(events []runlog.Event) {
	f.progress.Sign, f.progress.LastSeq = f.s.cfg.Now(), f.last
	for _, e := range events {
		switch e.Kind {
		case runlog.KindStarted:
			f.progress.Session, f.progress.Model = e.Session, e.Model
		case runlog.KindToolUse:
			f.progress.Doing = runlog.Cut(strings.TrimSuffix(e.ToolName+": "+runlog.InputWords(e.Input), ": "), 120)
		case runlog.KindText:
			f.progress.Turns++
			f.progress.Doing = runlog.Cut(e.Text, 120)
		}
	}
}

// tell stores a sign of life, not too often.
func (f *following) tell(ctx context.Context, now bool) error {
	if f.progress.LastSeq == 0 || !now && f.s.cfg.Now().Sub(f.told) < f.s.cfg.Every {
		return nil
	}
	f.told = f.s.cfg.Now()
	p := f.progress
	_, err := f.s.cfg.Store.Apply(ctx, state.Event{Kind: state.EventProgress, Task: f.task, Run: f.run, Progress: &p}, state.Ack{})
	return err
}

// end stores the run's end: in its transcript, then with the task.
func (f *following) end(ctx context.Context, x runlog.Exit, res state.RunResult) error {
	res.LastSeq = f.last
	t, err := f.s.cfg.Store.Task(ctx, f.task)
	if err != nil {
		return err
	}
	if err := f.transcript.End(record(t, f.run, x, res, f.s.cfg.Now())); err != nil {
		return err
	}
	applied, err := f.s.cfg.Store.Apply(ctx, state.Event{Kind: state.EventRunEnded, Task: f.task, Run: f.run, Result: &res}, state.Ack{})
	if err != nil {
		return err
	}
	f.compare(applied.Task)
	f.logFailure(res)
	f.notStarted(applied.Task, res)
	return errTold
}

// logFailure logs what an agent's program, or the runner, said of a failure, which people read in errand's words only.
func (f *following) logFailure(res state.RunResult) {
	if res.ProgramError == "" && res.RunnerNote == "" || res.Status == state.StatusStartFailed { // which notStarted logs
		return
	}
	log := f.s.cfg.Log.Warn().Str("task", f.task.String()).Str("run", f.run).Str("status", res.Status)
	if res.ProgramError != "" {
		log.Str("program_error", res.ProgramError)
	}
	if res.RunnerNote != "" {
		log.Str("runner_note", res.RunnerNote)
	}
	log.Msg("agent run failed")
}

// notStarted logs an agent's program that could not be started, which only the operator can change. t may be nil.
func (f *following) notStarted(t *state.Task, res state.RunResult) {
	if res.Status != state.StatusStartFailed {
		return
	}
	log := f.s.cfg.Log.Error().Str("task", f.task.String()).Str("run", f.run).Str("error", cmp.Or(res.RunnerNote, res.ProgramError))
	adapter := ""
	if t != nil {
		if r := find(t, f.run); r != nil {
			adapter = r.Adapter
			log.Str("adapter", r.Adapter).Str("vm", r.VM)
		}
	}
	log.Str("remedy", install(adapter)).Msg("the agent's program could not be started")
}

// install says how an adapter's program comes onto VMs.
func install(adapter string) string {
	program := map[string]string{
		"claude": "Claude Code (npm install -g @anthropic-ai/claude-code)",
		"codex":  "Codex (npm install -g @openai/codex)",
		"gemini": "Gemini CLI (npm install -g @google/gemini-cli)",
	}[adapter]
	if program == "" {
		program = "the program that the adapter's `command` names"
	}
	return "install " + program + " on the VMs, or on this host for local boxes, or change the adapter's `command` in errand.yml"
}

// compare logs that the agent's program and the gateway have counted different tokens. t may be nil.
func (f *following) compare(t *state.Task) {
	if t == nil {
		return
	}
	r := find(t, f.run)
	if r == nil {
		return
	}
	if m := r.Miscount(); m != nil {
		f.s.cfg.Log.Warn().Str("task", f.task.String()).Str("run", f.run).Str("adapter", m.Adapter).
			Int64("said_input_tokens", m.SaidInput).Int64("said_output_tokens", m.SaidOutput).
			Int64("counted_input_tokens", m.CountedInput).Int64("counted_output_tokens", m.CountedOutput).
			Msg("an agent's program says to have used other tokens than the gateway counted; the gateway's count is what counts")
	}
}

// superseded reports whether nobody waits for this run any more.
func (f *following) superseded(ctx context.Context) bool {
	t, err := f.s.cfg.Store.Task(ctx, f.task)
	return err == nil && (t == nil || t.Run == nil || t.Run.ID != f.run || t.Run.State != state.RunActive)
}

// letGo ends the transcript of a run that nobody waits for any more and that cannot be read to its end: most of the
// time its VM is gone.
func (f *following) letGo(ctx context.Context, cause error, log zerolog.Logger) {
	t, err := f.s.cfg.Store.Task(ctx, f.task)
	if err == nil && t != nil {
		if r := find(t, f.run); r != nil && !r.Told {
			err = f.transcript.End(Unread(t, r))
		}
	}
	if err != nil {
		log.Error().Err(err).AnErr("cause", cause).Msg("end the transcript of a run that was stopped")
	}
}

// lost reports a VM that will not come back.
func (f *following) lost(ctx context.Context, cause error, log zerolog.Logger) {
	res := state.RunResult{Status: state.StatusVMLost, Class: "retryable", Message: "the VM was lost", Ended: f.s.cfg.Now()}
	if err := f.end(ctx, runlog.Exit{Cause: runlog.CauseLost}, res); err != nil && !errors.Is(err, errTold) {
		log.Error().Err(err).AnErr("cause", cause).Msg("report a lost VM")
	}
}
