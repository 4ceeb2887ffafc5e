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
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/store"
)

// Records is a growing log of a run. Next returns io.EOF after the exit record.
type Records interface {
	Next() (runlog.Record, error)
	Close() error
}

// An Interpreter converts the lines of one run to events and a result. It must get every line from the first.
type Interpreter interface {
	Line(l runlog.Line) []runlog.Event
	Exit(x runlog.Exit) state.RunResult
}

// A Transcript stores the output of a run. Add ignores lines that it already has, by number. End stores the outcome and
// may be repeated.
type Transcript interface {
	Add(l runlog.Line, events []runlog.Event) error
	End(e runlog.End) error
	Close() error
}

// SupervisorConfig configures a [Supervisor]. Zero durations select the defaults in parentheses.
type SupervisorConfig struct {
	Store interface {
		Reader
		Applier
	}
	// Follow opens a run's log after line from. Gone reports whether its error means that the VM is lost.
	Follow func(ctx context.Context, vm, run string, from int64) (Records, error)
	Gone   func(error) bool
	// Tether keeps the VM's tether open during the run.
	Tether      func(ctx context.Context, t *state.Task) error
	Interpret   func(t *state.Task, r *state.Run) Interpreter
	Transcripts func(run string) (Transcript, error)
	Log         zerolog.Logger
	Now         func() time.Time
	Every       time.Duration // interval between stored activity updates (5 s)
	GiveUp      time.Duration // time after which an unreachable VM counts as lost (10 min)
}

// A Supervisor follows every active run until its end, across restarts of errand and lost connections: a run does not
// depend on errand, and its log is read on from the last stored line.
type Supervisor struct {
	cfg      SupervisorConfig
	mu       sync.Mutex
	followed map[string]bool // runs that are followed now
}

// NewSupervisor returns a [Supervisor].
func NewSupervisor(cfg SupervisorConfig) *Supervisor {
	if cfg.Every == 0 {
		cfg.Every = 5 * time.Second
	}
	if cfg.GiveUp == 0 {
		cfg.GiveUp = 10 * time.Minute
	}
	return &Supervisor{cfg: cfg, followed: map[string]bool{}}
}

// Run follows runs until ctx ends.
func (s *Supervisor) Run(ctx context.Context) error {
	wake := s.cfg.Store.Wake(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		tasks, err := s.cfg.Store.TasksIn(ctx,
			state.PhasePreliminaryPlanning, state.PhasePlanning, state.PhaseImplementing, state.PhaseAddressingReview)
		if err != nil && ctx.Err() == nil {
			s.cfg.Log.Error().Err(err).Msg("failed to list active runs")
		}
		for _, t := range tasks {
			if t.Run == nil || t.Run.State != state.RunActive || !s.claim(t.Run.ID) {
				continue
			}
			wg.Go(func() {
				defer s.unclaim(t.Run.ID)
				s.follow(ctx, t)
			})
		}
		if !pause(ctx, 5*time.Second, wake) {
			return nil
		}
	}
}

func (s *Supervisor) claim(run string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.followed[run] {
		return false
	}
	s.followed[run] = true
	return true
}

func (s *Supervisor) unclaim(run string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.followed, run)
}

// Follows reports whether a run is being followed. If so, the supervisor also ends its transcript.
func (s *Supervisor) Follows(run string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.followed[run]
}

// follow reads a run to its end and reports it.
func (s *Supervisor) follow(ctx context.Context, t *state.Task) {
	f, err := s.Follow(t)
	if err != nil {
		s.cfg.Log.Error().Err(err).Str("run", t.Run.ID).Msg("failed to open the transcript")
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

// following is the state of following one run.
type following struct {
	s           *Supervisor
	task        state.TaskKey
	run         string
	interpreter Interpreter
	transcript  Transcript
	lastLine    int64 // last line in the transcript
	// pending holds the events of line interpreted, until the transcript has that line.
	interpreted int64
	pending     []runlog.Event
	lastOK      time.Time
	reportedAt  time.Time // last activity update in the store
	progress    event.Progress
	tools       map[string]bool // ids of the tools that the agent executes, as far as the log was read
	upToDate    bool            // the log was read to its end: the connection sends heartbeats only then
	steered     bool            // messages wait for a moment between two tools
}

// errEndStored signals that the run's end is stored.
var errEndStored = errors.New("the run's end is stored")

// read follows the run over one connection. ended reports that its end is stored.
func (f *following) read(ctx context.Context, t *state.Task) (ended bool, err error) {
	if err := f.s.cfg.Tether(ctx, t); err != nil {
		return false, err
	}
	rec, err := f.s.cfg.Follow(ctx, t.Run.VM, f.run, f.lastLine)
	if err != nil {
		return false, err
	}
	defer func() { _ = rec.Close() }()
	f.upToDate = false
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
			return errors.Is(err, errEndStored), err
		}
	}
}

// record processes one record.
func (f *following) record(ctx context.Context, r runlog.Record) error {
	switch {
	case r.Line != nil:
		if r.Line.Seq <= f.lastLine {
			return nil
		}
		if r.Line.Seq > f.interpreted { // otherwise an earlier write of the line to the transcript failed
			f.interpreted, f.pending = r.Line.Seq, f.interpreter.Line(*r.Line)
		}
		events := f.pending
		if err := f.transcript.Add(*r.Line, events); err != nil {
			return err
		}
		f.lastLine, f.pending = r.Line.Seq, nil
		f.logEvents(events)
		f.updateProgress(events)
		return f.reportProgress(ctx, f.interrupts())
	case r.Exit != nil:
		return f.end(ctx, *r.Exit, f.interpreter.Exit(*r.Exit))
	}
	f.upToDate = true
	return f.reportProgress(ctx, f.interrupts())
}

// interrupts reports whether this is the moment to interrupt the run for messages.
func (f *following) interrupts() bool { return f.steered && f.isBetweenTools() }

// isBetweenTools reports whether the agent executes no tool.
func (f *following) isBetweenTools() bool { return f.upToDate && len(f.tools) == 0 }

// maxTools limits the tools that an agent executes at the same time, for memory.
const maxTools = 1000

// maxLoggedText limits the text of one logged event in characters. The transcript has the full text.
const maxLoggedText = 200

// logEvents logs the agent's events at the debug level.
func (f *following) logEvents(events []runlog.Event) {
	for i := range events {
		e := &events[i]
		f.s.cfg.Log.Debug().Str("task", f.task.String()).Str("run", f.run).Int64("seq", e.Seq).
			Str("kind", string(e.Kind)).Str("tool", e.ToolName).
			Str("text", runlog.Cut(e.Text, maxLoggedText)).Msg("agent event")
	}
}

// updateProgress keeps the parts of events that people see, such as the last activity.
func (f *following) updateProgress(events []runlog.Event) {
	f.progress.LastActivity, f.progress.LastSeq = f.s.cfg.Now(), f.lastLine
	for _, e := range events {
		switch e.Kind {
		case runlog.KindStarted:
			f.progress.Session, f.progress.Model = e.Session, e.Model
		case runlog.KindToolUse:
			f.progress.Doing = runlog.Cut(strings.TrimSuffix(e.ToolName+": "+runlog.InputWords(e.Input), ": "), 120)
			if e.ToolID != "" && len(f.tools) < maxTools {
				f.tools[e.ToolID] = true
			}
		case runlog.KindToolResult:
			delete(f.tools, e.ToolID)
		case runlog.KindText:
			f.progress.Turns++
			f.progress.Doing = runlog.Cut(e.Text, 120)
		}
	}
}

// reportProgress stores an activity update, at most once per Every unless now is true.
func (f *following) reportProgress(ctx context.Context, now bool) error {
	if f.progress.LastSeq == 0 || !now && f.s.cfg.Now().Sub(f.reportedAt) < f.s.cfg.Every {
		return nil
	}
	f.reportedAt = f.s.cfg.Now()
	p := f.progress
	p.Between = f.isBetweenTools()
	applied, err := f.s.cfg.Store.Apply(ctx, event.Event{Task: f.task, Run: f.run, Payload: p}, store.Ack{})
	if err != nil {
		return err
	}
	t := applied.Task
	f.steered = t != nil && t.Run != nil && t.Run.ID == f.run && t.Run.Steering != nil && t.Run.Steering.Ready
	return nil
}

// end stores the run's end, first in its transcript, then in the task.
func (f *following) end(ctx context.Context, x runlog.Exit, res state.RunResult) error {
	res.LastSeq = f.lastLine
	t, err := f.s.cfg.Store.Task(ctx, f.task)
	if err != nil {
		return err
	}
	if err := f.transcript.End(finalRecord(t, f.run, x, res, f.s.cfg.Now())); err != nil {
		return err
	}
	applied, err := f.s.cfg.Store.Apply(ctx, event.Event{Task: f.task, Run: f.run, Payload: event.RunEnded{Result: res}}, store.Ack{})
	if err != nil {
		return err
	}
	f.logTokenMismatch(applied.Task)
	f.logFailure(res)
	f.logStartFailure(applied.Task, res)
	return errEndStored
}

// logFailure logs the failure message of an agent's program or of the runner. Comments only have errand's wording of
// it.
func (f *following) logFailure(res state.RunResult) {
	switch {
	case res.ProgramError == "" && res.RunnerNote == "", res.Status == state.StatusStartFailed: // logStartFailure logs these
		return
	case res.Status == state.StatusInterrupted: // on errand's order
		return
	}
	log := f.s.cfg.Log.Warn().Str("task", f.task.String()).Str("run", f.run).Str("status", string(res.Status))
	if res.ProgramError != "" {
		log.Str("program_error", res.ProgramError)
	}
	if res.RunnerNote != "" {
		log.Str("runner_note", res.RunnerNote)
	}
	log.Msg("agent run failed")
}

// logStartFailure logs that an agent's program could not be started, which only the operator can fix. t may be nil.
func (f *following) logStartFailure(t *state.Task, res state.RunResult) {
	if res.Status != state.StatusStartFailed {
		return
	}
	log := f.s.cfg.Log.Error().Str("task", f.task.String()).Str("run", f.run).Str("error", cmp.Or(res.RunnerNote, res.ProgramError))
	adapter := ""
	if t != nil {
		if r := findRun(t, f.run); r != nil {
			adapter = r.Adapter
			log.Str("adapter", r.Adapter).Str("vm", r.VM)
		}
	}
	log.Str("remedy", installHint(adapter)).Msg("the agent's program could not be started")
}

// installHint returns instructions for installing an adapter's program on VMs.
func installHint(adapter string) string {
	program := map[string]string{
		"claude": "Claude Code (npm install -g @anthropic-ai/claude-code)",
		"codex":  "Codex (npm install -g @openai/codex)",
		"gemini": "Gemini CLI (npm install -g @google/gemini-cli)",
	}[adapter]
	if program == "" {
		program = "the program that the adapter's `command` names"
	}
	return "install " + program + " on the VMs, or on this host for local sandboxes, or change the adapter's `command` in your configuration"
}

// logTokenMismatch logs if the agent's program and the gateway report different token counts. t may be nil.
func (f *following) logTokenMismatch(t *state.Task) {
	if t == nil {
		return
	}
	r := findRun(t, f.run)
	if r == nil {
		return
	}
	if m := r.TokenMismatch(); m != nil {
		f.s.cfg.Log.Warn().Str("task", f.task.String()).Str("run", f.run).Str("adapter", m.Adapter).
			Int64("said_input_tokens", m.ReportedInput).Int64("said_output_tokens", m.ReportedOutput).
			Int64("counted_input_tokens", m.CountedInput).Int64("counted_output_tokens", m.CountedOutput).
			Msg("agent-reported tokens differ from the gateway's; using the gateway's count")
	}
}

// isSuperseded reports whether the task no longer waits for this run.
func (f *following) isSuperseded(ctx context.Context) bool {
	t, err := f.s.cfg.Store.Task(ctx, f.task)
	return err == nil && (t == nil || t.Run == nil || t.Run.ID != f.run || t.Run.State != state.RunActive)
}

// endTranscript ends the transcript of a superseded run that cannot be read to its end, usually because its VM was deleted.
func (f *following) endTranscript(ctx context.Context, cause error, log zerolog.Logger) {
	t, err := f.s.cfg.Store.Task(ctx, f.task)
	if err == nil && t != nil {
		if r := findRun(t, f.run); r != nil && !r.Reported {
			err = f.transcript.End(UnreadRecord(t, r))
		}
	}
	if err != nil {
		log.Error().Err(err).AnErr("cause", cause).Msg("failed to end the transcript of a stopped run")
	}
}

// reportLost reports that the VM is lost.
func (f *following) reportLost(ctx context.Context, cause error, log zerolog.Logger) {
	res := state.RunResult{Status: state.StatusVMLost, Class: state.RunRetryable, Message: "the VM was lost", Ended: f.s.cfg.Now()}
	if err := f.end(ctx, runlog.Exit{Cause: runlog.CauseLost}, res); err != nil && !errors.Is(err, errEndStored) {
		log.Error().Err(err).AnErr("cause", cause).Msg("failed to report a lost VM")
	}
}
