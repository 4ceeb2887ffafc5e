// Package pause keeps new work from starting while the operator has paused errand or a repository: it applies the operator's orders,
// tells steps that would start a run or create a VM to wait, lists the work that goes on meanwhile, and continues the tasks that
// waited when the operator resumes.
//
// The pauses are in the store, so they survive restarts. Start with Keeper.Pause and Keeper.Waiting.
package pause

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/words"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/store"
	"github.com/errand-bot/errand/state/vm"
)

// Config configures a Keeper.
type Config struct {
	Store *store.Store
	// Repository returns the repository of a name, OWNER/NAME, to which the App has access. Its error for another name is a
	// RefusedError.
	Repository func(ctx context.Context, name string) (state.Repo, error)
	// Redact removes secrets from the reason of a pause, which errand's comments show.
	Redact func(string) string
	// BakesBeginning returns the number of bakes that no pause keeps from creating their VM any more, and whose VM may not be in the
	// store yet.
	BakesBeginning func() int
	Log            zerolog.Logger
	// Every is how often the waiting tasks are compared with the pauses, in addition to each resumption.
	Every time.Duration
	// Again is how long after a resumption they are compared once more: a step may have read the pauses before it, and have its task
	// wait after it.
	Again time.Duration
}

// A Keeper applies pauses. Its methods may be called concurrently.
type Keeper struct {
	cfg     Config
	resumed chan struct{} // holds one value while a resumption is not handled yet
}

// New returns a Keeper.
func New(cfg Config) *Keeper { return &Keeper{cfg: cfg, resumed: make(chan struct{}, 1)} }

// A RefusedError is the reason, for the operator, why an order is refused. Nothing was changed.
type RefusedError struct{ Reason string }

func (e *RefusedError) Error() string { return e.Reason }

// maxReason is the maximum length of a reason in characters: status comments show it.
const maxReason = 200

// List returns the pauses in effect.
func (k *Keeper) List(ctx context.Context) ([]state.Pause, error) {
	return k.cfg.Store.Pauses.List(ctx)
}

// Waiting returns the wait of a task of a repository that would start a run or create a VM, or nil if neither errand nor the
// repository is paused.
func (k *Keeper) Waiting(ctx context.Context, repo int64) (*state.Waiting, error) {
	p, err := k.cfg.Store.Pauses.Of(ctx, repo)
	if p == nil || err != nil {
		return nil, err
	}
	return p.Waiting(), nil
}

// Pause pauses a repository, or everything if the name is empty, and stores a, completed with the result. It may be repeated.
func (k *Keeper) Pause(ctx context.Context, repo, reason string, a store.Action) (store.Action, error) {
	reason, err := k.cleanReason(reason)
	if err != nil {
		return a, err
	}
	p := state.Pause{By: a.By, Reason: reason}
	if repo != "" {
		if p.Repo, p.Name, err = k.findToPause(ctx, repo); err != nil {
			return a, err
		}
		a.Subject = p.Name
	} else if old, err := k.cfg.Store.Pauses.Of(ctx, 0); err != nil {
		return a, err
	} else if old != nil && !old.Restored.IsZero() { // nothing that is under way would come to an end
		return a, &RefusedError{Reason: "errand was restored from a backup, and does nothing until `errand resume`: there is nothing to pause or to wait for"}
	}
	if a.Command = "pause"; reason != "" {
		a.Command += ": " + reason
	}
	done, err := k.cfg.Store.Pauses.Set(ctx, p, a)
	if err != nil {
		return a, err
	}
	k.cfg.Log.Info().Str("operator", done.By).Str("repository", p.Name).Str("reason", reason).Str("result", done.Result).Msg("paused")
	k.wake() // a task that waits shows the new reason
	work, err := k.UnderWay(ctx)
	if err != nil {
		k.cfg.Log.Warn().Err(err).Msg("failed to list the work that goes on during a pause")
		return done, nil
	}
	done.Result += goesOn(work, p.Repo)
	return done, nil
}

// goesOn describes the agents that go on working during the pause of a repository, or of everything for 0.
func goesOn(work []Work, repo int64) string {
	var names []string
	for _, w := range work {
		if w.Agent && (repo == 0 || w.repo == repo) {
			names = append(names, w.Task)
		}
	}
	switch n := len(names); n {
	case 0:
		return "; no agent is working"
	case 1:
		return "; one agent goes on to its end, for " + names[0] + " (`errand stop " + names[0] + "` stops it)"
	default:
		return fmt.Sprintf("; %d agents go on to their end, for %s (`errand stop OWNER/REPO#N` stops one)", n, shortList(names))
	}
}

// shortList joins names, the first maxNames of them.
func shortList(names []string) string {
	if more := len(names) - maxNames; more > 0 {
		names = append(slices.Clone(names[:maxNames]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// Resume ends the pause of a repository, or that of everything if the name is empty. With all it ends those of single repositories,
// too. The tasks that waited continue at once.
func (k *Keeper) Resume(ctx context.Context, repo string, all bool, a store.Action) (store.Action, error) {
	id := int64(0)
	if a.Command = "resume"; all {
		a.Command += " --all"
	}
	if repo != "" {
		var err error
		if id, a.Subject, err = k.findPaused(ctx, repo); err != nil {
			return a, err
		}
	}
	done, ended, left, err := k.cfg.Store.Pauses.Lift(ctx, func(p state.Pause) bool { return all && repo == "" || p.Repo == id }, a)
	if err != nil {
		return a, err
	}
	k.cfg.Log.Info().Str("operator", done.By).Str("repository", a.Subject).Bool("all", all).Int("ended", len(ended)).Msg("resumed")
	k.wake()
	done.Result += stillPaused(left, id)
	return done, nil
}

// stillPaused describes the pauses that an operator who resumed a repository, or everything, may have forgotten.
func stillPaused(left []state.Pause, repo int64) string {
	if len(left) > 0 && left[0].Repo == 0 {
		return "; errand as a whole is still paused: `errand resume`"
	}
	if repo != 0 || len(left) == 0 {
		return ""
	}
	var names []string
	for _, p := range left {
		names = append(names, p.Name)
	}
	return "; still paused: " + shortList(names) + " (`errand resume --all` ends these pauses, too)"
}

// maxNames is the maximum number of names in one line.
const maxNames = 10

// findPaused returns the ID and the name of a repository that was paused under a name. It is found without GitHub, unless several were
// paused under the name that they had, one after the other.
func (k *Keeper) findPaused(ctx context.Context, repo string) (int64, string, error) {
	list, err := k.List(ctx)
	if err != nil {
		return 0, "", err
	}
	list = slices.DeleteFunc(list, func(p state.Pause) bool { return p.Repo == 0 || !strings.EqualFold(p.Name, repo) })
	if len(list) == 1 {
		return list[0].Repo, list[0].Name, nil
	}
	r, err := k.cfg.Repository(ctx, repo)
	return r.ID, r.FullName(), err
}

// findToPause returns the ID and the name of the repository that has a name now. A repository that has lost it to another one is paused
// by its ID, so its pause is not that of the other. If none has the name, or GitHub does not answer, it is that of the repository
// that was paused under it.
func (k *Keeper) findToPause(ctx context.Context, repo string) (int64, string, error) {
	r, err := k.cfg.Repository(ctx, repo)
	if err != nil {
		if id, name, err := k.findPaused(ctx, repo); err == nil {
			return id, name, nil
		}
	}
	return r.ID, r.FullName(), err
}

// cleanReason returns a reason as one line without secrets and control characters.
func (k *Keeper) cleanReason(reason string) (string, error) {
	reason = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if !unicode.IsGraphic(r) && !unicode.IsSpace(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(reason, ""))), " ")
	if n := len([]rune(reason)); n > maxReason {
		return "", &RefusedError{fmt.Sprintf("the reason has %d characters; at most %d are possible, because status comments show it", n, maxReason)}
	}
	return k.cfg.Redact(reason), nil
}

// Work is something that goes on while errand is paused.
type Work struct {
	Task  string // OWNER/REPO#N; empty for a base image
	Doing string
	Agent bool // an agent or the repository's checks run, or are being started
	repo  int64
}

// UnderWay lists the runs that work or are being started, the tasks whose work is being saved or published, and the VMs in which
// base images are baked.
func (k *Keeper) UnderWay(ctx context.Context) ([]Work, error) {
	tasks, err := k.cfg.Store.UnderWay(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the work: %w", err)
	}
	list := []Work{}
	for _, u := range tasks {
		w := Work{Task: fmt.Sprintf("%s#%d", u.Repo.FullName(), u.Task.Issue), Doing: words.Step(u.Job), Agent: u.Job == state.JobLaunch,
			repo: u.Task.Repo}
		if u.Job == state.StepRun {
			w.Doing, w.Agent = words.Running(u.Run), true
		}
		list = append(list, w)
	}
	beginning := k.cfg.BakesBeginning() // before the VMs are read: a bake that is counted no more has its VM
	rows, err := k.cfg.Store.VMs.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the VMs: %w", err)
	}
	for _, r := range rows {
		if isBaking(r) {
			list = append(list, Work{Doing: "baking a base image on VM " + r.Name})
			beginning-- // it may be counted still
		}
	}
	if beginning > 0 {
		list = append(list, Work{Doing: "creating a VM for a base image"})
	}
	return list, nil
}

// isBaking reports whether a base image is baked on a VM.
func isBaking(r vm.Row) bool { return r.Task.IsZero() && !r.Standby && !r.Phase.Over() }

// Run continues the tasks that wait for a pause that has ended, until ctx ends: after each resumption, when errand starts, and
// every minute or so in case that failed.
func (k *Keeper) Run(ctx context.Context) error {
	if list, err := k.List(ctx); err == nil && len(list) > 0 {
		k.cfg.Log.Warn().Int("pauses", len(list)).Str("by", list[0].By).Str("repository", list[0].Name).Time("since", list[0].Since).Str("reason", list[0].Reason).
			Msg("the operator paused work, so tasks may wait; `errand resume` continues them")
	}
	tick := time.NewTicker(k.cfg.Every)
	defer tick.Stop()
	var again <-chan time.Time
	for {
		if err := k.Step(ctx); err != nil && ctx.Err() == nil {
			k.cfg.Log.Warn().Err(err).Msg("failed to continue the tasks that waited for a pause; retrying")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-again:
		case <-k.resumed:
			again = time.After(k.cfg.Again)
		}
	}
}

// Step lets the tasks whose wait does not match the pauses try again, in the order in which they began to wait.
func (k *Keeper) Step(ctx context.Context) error {
	all, err := k.cfg.Store.Overviews(ctx)
	if err != nil {
		return err
	}
	var waiting []*state.Task
	for _, o := range all {
		if o.Waiting != state.WaitPaused {
			continue
		}
		t, err := k.cfg.Store.Task(ctx, o.Key)
		if err != nil {
			return err
		}
		if t != nil && t.Waiting != nil && t.Waiting.Kind == state.WaitPaused {
			waiting = append(waiting, t)
		}
	}
	slices.SortStableFunc(waiting, func(a, b *state.Task) int { return a.Waiting.Since.Compare(b.Waiting.Since) })
	var failed []error
	for _, t := range waiting {
		w, err := k.Waiting(ctx, t.Key.Repo)
		if err == nil && (w == nil || w.Detail != t.Waiting.Detail) {
			_, err = k.cfg.Store.Apply(ctx, event.Event{Task: t.Key, Payload: event.ConditionChanged{}}, store.Ack{})
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

func (k *Keeper) wake() {
	select {
	case k.resumed <- struct{}{}:
	default: // Run has not handled the previous one yet
	}
}
