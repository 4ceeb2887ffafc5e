package workflow

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/errand-bot/errand/internal/archive"
	"github.com/errand-bot/errand/internal/runner/pack"
	"github.com/errand-bot/errand/internal/runner/work"
	"github.com/errand-bot/errand/internal/runnerctl"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/machine"
	"github.com/errand-bot/errand/state/vm"
)

// maxUnpacks is how often unpacking is tried before the work begins from the branch instead.
const maxUnpacks = 4

// wake brings what was put away onto a VM that does not have it, and notes in the launch whether it did. It
// may be repeated until a run has begun. What can never be unpacked is no error: the run then begins from the
// branch, the plan and the transcript, and people are told.
func (s *Steps) wake(ctx context.Context, w *unit, l *state.Launch, place runnerctl.Place) error {
	t := w.task
	if t.VM != nil && t.VM.Name == l.VM.Name {
		l.VM.Carries = t.VM.Carries
	}
	a := t.Wakes()
	switch {
	case a == nil || l.VM.Holds(a.VM):
		return nil
	case l.NotWoken != "":
		return nil
	case a.Mode == state.SleepSnapshot: // it was made from that
		l.VM.Carries = a.Carried()
		return nil
	}
	err := s.unpack(ctx, w, l.VM.Name, place, a)
	var bad *notUnpacked
	switch {
	case err == nil:
		l.VM.Carries = a.Carried()
	case errors.As(err, &bad) && (bad.forGood() || w.job.Try() >= maxUnpacks):
		w.log.Warn().Err(err).Msg("what was put away cannot be used")
		l.NotWoken = bad.reason()
	default:
		return err
	}
	return nil
}

// notUnpacked is an error of the archive itself, or of unpacking it.
type notUnpacked struct{ err error }

func (e *notUnpacked) Error() string { return e.err.Error() }

func (e *notUnpacked) Unwrap() error { return e.err }

// forGood reports whether trying again does not help.
func (e *notUnpacked) forGood() bool {
	for _, known := range []error{pack.ErrMalformed, pack.ErrTooLarge, pack.ErrNoBase, work.ErrNoRepository, archive.ErrNoSleep, archive.ErrSleepDamaged} {
		if errors.Is(e.err, known) {
			return true
		}
	}
	return false
}

// reason says it to people.
func (e *notUnpacked) reason() string {
	switch {
	case errors.Is(e.err, archive.ErrNoSleep):
		return "the archive of the work is gone"
	case errors.Is(e.err, pack.ErrMalformed), errors.Is(e.err, archive.ErrSleepDamaged):
		return "the archive of the work is damaged"
	case errors.Is(e.err, pack.ErrTooLarge):
		return "the archive of the work is too large"
	case errors.Is(e.err, pack.ErrNoBase):
		return "the commit that the work builds on is gone"
	}
	return "the archive of the work could not be unpacked"
}

// unpack makes a checkout at the commit that the archive builds on, and unpacks it there.
func (s *Steps) unpack(ctx context.Context, w *unit, server string, place runnerctl.Place, a *state.Asleep) error {
	t := w.task
	stream, err := s.Files.OpenSleep(a.Ref, a.SHA256)
	if err != nil {
		return &notUnpacked{fmt.Errorf("open the archive: %w", err)}
	}
	defer func() { _ = stream.Close() }()
	from := t.Branch.Name
	if t.Branch.Head == "" {
		from = t.Branch.Base
	}
	src := s.source(t, server, place, from)
	spec, err := s.prepareSpec(ctx, t, place, src, a.Base)
	if err != nil {
		return err
	}
	if _, err := s.Runner.Prepare(ctx, server, spec); err != nil {
		return s.branchGone(ctx, w, fmt.Errorf("prepare the checkout: %w", err))
	}
	if _, err := s.Runner.Unpack(ctx, server, pack.UnpackSpec{Dir: place.Dir, Home: place.Home, Source: src, Keep: kept(t)}, stream); err != nil {
		if runnerctl.Gone(err) {
			return err
		}
		return &notUnpacked{fmt.Errorf("unpack the work on VM %s: %w", server, err)}
	}
	return nil
}

// prepareSpec is how a checkout of the task's branch is made at a commit.
func (s *Steps) prepareSpec(ctx context.Context, t *state.Task, place runnerctl.Place, src work.Source, commit string) (work.PrepareSpec, error) {
	me, err := s.GitHub.Self(ctx)
	return work.PrepareSpec{
		Dir: place.Dir, Source: src, Branch: t.Branch.Name, Base: commit,
		Config:   work.LFSConfig(place.Runner, strings.TrimSuffix(src.URL, ".git")),
		UserName: me.BotLogin, UserEmail: fmt.Sprintf("%d+%s@users.noreply.github.com", me.BotID, me.BotLogin),
	}, err
}

// awake brings work that sleeps onto a VM for a step that needs it there, and returns the event after which the step
// is taken again; woke is false if there is nothing to wake.
func (s *Steps) awake(ctx context.Context, w *unit) (e state.Event, woke bool, err error) {
	t := w.task
	if t.VM != nil || t.Wakes() == nil {
		return e, false, nil
	}
	l := &state.Launch{Run: w.job.Run, Started: s.Now()}
	place, held, err := s.reach(ctx, t, l)
	if held != nil || err != nil {
		return heldUp(held), true, err
	}
	if err := s.wake(ctx, w, l, place); err != nil {
		return e, true, err
	}
	return state.Event{Kind: state.EventWoken, Launch: l, Detail: string(w.job.Kind)}, true, nil
}

// reach gets the task's VM and its tether, or says what has to be waited for.
func (s *Steps) reach(ctx context.Context, t *state.Task, l *state.Launch) (place runnerctl.Place, held *state.Waiting, err error) {
	server, err := s.VMs.Acquire(ctx, t)
	if errors.Is(err, ErrNoSnapshot) {
		l.NotWoken = "the snapshot of the VM is gone"
		without := *t
		without.Asleep = nil
		server, err = s.VMs.Acquire(ctx, &without)
	}
	switch held, err := refusal(err); {
	case held != nil:
		return place, held, nil
	case err != nil:
		return place, nil, fmt.Errorf("get a VM: %w", err)
	}
	l.VM = server
	if place, err = s.Runner.Place(ctx, server.Name); err != nil {
		return place, nil, err
	}
	if s.RealAgent && !place.Isolated && !s.AllowUnsandboxed {
		return place, nil, &Problem{Reason: "This host cannot isolate an agent: only plain boxes can be had here.", Class: "vm", Permanent: true,
			Hint: "The operator can install bubblewrap, or set `local.allow_unsandboxed: true` and take the risk."}
	}
	if err := s.Tether.Ensure(ctx, server.Name, t.Key); err != nil {
		return place, nil, fmt.Errorf("attach the tether of VM %s: %w", server.Name, err)
	}
	return place, nil, nil
}

// refusal says what an error of getting a VM means: something to wait for, or a reason for people to act.
func refusal(err error) (*state.Waiting, error) {
	var limit *vm.LimitError
	switch {
	case errors.Is(err, ErrNoVM):
		return &state.Waiting{Kind: state.WaitVM, Detail: err.Error()}, nil
	case !errors.As(err, &limit):
		return nil, err
	case limit.Limit == vm.LimitVMHours:
		return nil, &Problem{Reason: upper(limit.Reason) + ".", Hint: limit.Hint(), Class: state.ClassVMHours, Permanent: true, Err: err}
	case limit.Limit == vm.LimitVMsDay, limit.Limit == vm.LimitVMsMonth:
		return &state.Waiting{Kind: state.WaitMoney, Detail: limit.Reason + "; raise `" + limit.Limit + "` to go on sooner", Until: limit.Until}, nil
	}
	return &state.Waiting{Kind: state.WaitVM, Detail: limit.Reason, Until: limit.Until}, nil
}

func upper(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// spanEnds asks whether another span of a VM may begin.
func (s *Steps) spanEnds(ctx context.Context, w *unit, server string) (state.Event, error) {
	e := state.Event{Kind: state.EventDue, Detail: machine.DueSpan, Hash: server}
	if s.SpanAllowed == nil || w.task.VM == nil || w.task.VM.Name != server {
		return e, nil
	}
	err := s.SpanAllowed(ctx, server)
	var limit *vm.LimitError
	if errors.As(err, &limit) && limit.Limit == vm.LimitVMHours {
		return e, nil // the table knows how many there are
	}
	held, err := refusal(err)
	e.Waiting = held
	return e, err
}
