package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/errand-bot/errand/handlers"
	"github.com/errand-bot/errand/internal/clock"
	"github.com/errand-bot/errand/internal/doctor"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/watch"
	"github.com/errand-bot/errand/state"
)

// restored returns the pause that a restoration began, or nil if the operator has ended it since.
func (s *Server) restored(ctx context.Context) (*state.Pause, error) {
	p, err := s.store.Pauses.Of(ctx, 0)
	if err != nil || p == nil || p.Restored.IsZero() {
		return nil, err
	}
	return p, nil
}

// ErrRestored means that the store was restored from a backup, and the operator has not resumed errand yet.
var ErrRestored = errors.New("errand was restored from a backup, and nothing is created or deleted until `errand resume`; `errand doctor` compares it with GitHub and the VM provider")

// mayChange returns ErrRestored until the operator resumes a restored errand.
func (s *Server) mayChange(ctx context.Context) error {
	p, err := s.restored(ctx)
	if err == nil && p != nil {
		return ErrRestored
	}
	return err
}

// afterRestoration returns when a store that is a copy from a backup, if it is one, may be worked with. It returns nil when ctx ends, since a
// shutdown is no failure.
func (s *Server) afterRestoration(ctx context.Context, sweeper *watch.Sweeper, steps catchUpSteps) error {
	err := s.untilResumed(ctx, sweeper)
	if err == nil && ctx.Err() == nil {
		err = s.catchUp(ctx, steps)
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// resumeWatch is how often a restored errand looks whether the operator has resumed it, if no write wakes it.
const resumeWatch = 5 * time.Second

// untilResumed returns when the store is no copy from a backup, or the operator has resumed errand. Until then only webhooks are
// received and fetched, and none is applied.
func (s *Server) untilResumed(ctx context.Context, sweeper *watch.Sweeper) error {
	p, err := s.restored(ctx)
	if err != nil || p == nil {
		return err
	}
	s.opts.Log.Warn().Time("backup", p.Restored).Msg("errand was restored from a backup: nothing is posted, published, created or deleted until `errand resume`; " +
		"`errand doctor` compares it with GitHub and the VM provider")
	waiting, resumed := context.WithCancel(ctx)
	defer resumed()
	g, waiting := errgroup.WithContext(waiting)
	g.Go(func() error { return sweeper.FetchOnly(waiting) })
	g.Go(func() error {
		defer resumed()
		tick := time.NewTicker(resumeWatch)
		defer tick.Stop()
		changed := s.store.Pauses.Changed(waiting)
		for {
			if p, err := s.restored(waiting); p == nil && waiting.Err() == nil {
				return err
			}
			select {
			case <-waiting.Done():
				return nil
			case <-changed:
			case <-tick.C:
			}
		}
	})
	if err := g.Wait(); err != nil {
		return err
	}
	if ctx.Err() == nil {
		s.opts.Log.Info().Time("backup", p.Restored).Msg("the operator resumed the restored errand")
	}
	return nil
}

// catchUpSteps are the steps of catchUp.
type catchUpSteps struct {
	fetch, apply, compare, poll func(context.Context) error
}

func (s *Server) catchUpSteps(sweeper *watch.Sweeper, inbox *handlers.Inbox) catchUpSteps {
	poll := func(ctx context.Context) error {
		_, _, err := s.poller.Poll(ctx)
		return err
	}
	return catchUpSteps{fetch: sweeper.SweepDeliveries, apply: inbox.Drain, compare: sweeper.SweepRestored, poll: poll}
}

// catchUp lets a restored errand learn what people did since the backup, before any job runs: time limits that have ended meanwhile then
// come after the approvals that were given in time. It is done once after a restoration; if GitHub cannot be read for long, or refuses to show
// something, errand goes on.
func (s *Server) catchUp(ctx context.Context, steps catchUpSteps) error {
	if r := s.store.Restored(); r.At.IsZero() || !r.CaughtUp.IsZero() {
		return nil
	}
	within, cancel := context.WithTimeout(forge.WithPurpose(ctx, forge.ForSweep), s.opts.Timing.CatchUp)
	defer cancel()
	refused := 0 // times in a row
	for wait := s.opts.Timing.CatchUp / 60; ; wait = min(2*wait, s.opts.Timing.CatchUp/5) {
		err := errors.Join(steps.fetch(within), steps.apply(within), steps.compare(within), steps.apply(within), steps.poll(within))
		if ctx.Err() != nil {
			return nil
		}
		if err == nil {
			break
		}
		if refused++; !waitingIsUseless(err) {
			refused = 0
		}
		if refused == mostRefused {
			s.opts.Log.Error().Err(err).Msg("GitHub refuses to show everything that happened since the backup; the restored errand begins to work without that, and some of its tasks may be out of date")
			break
		}
		s.opts.Log.Warn().Err(err).Msg("failed to read from GitHub what happened since the backup; retrying")
		if clock.Sleep(within, wait) != nil {
			s.opts.Log.Error().Err(err).Msg("GitHub cannot be read; the restored errand begins to work without it, and some of its tasks may be out of date")
			break
		}
	}
	return s.store.MarkCaughtUp(ctx)
}

// mostRefused is after how many refusals in a row catchUp ends: for a moment GitHub refuses what it shows again later.
const mostRefused = 3

// waitingIsUseless reports whether the steps of catchUp failed only because GitHub refuses to show something, such as a repository to which
// the App no longer has access.
func waitingIsUseless(err error) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // every error of a tree is looked at
		for _, err := range joined.Unwrap() {
			if !waitingIsUseless(err) {
				return false
			}
		}
		return true
	}
	var refused *forge.Error
	if errors.As(err, &refused) && refused.Status == http.StatusUnauthorized {
		return false // the App as a whole: an operator can correct its key, or the clock
	}
	return errors.Is(err, watch.ErrRefused) || forge.IsPermanent(err)
}

// restoredCheck compares a restored store with GitHub and the VM provider, until the operator resumes errand. It changes nothing.
func (s *Server) restoredCheck(ctx context.Context) []doctor.Finding {
	const check = "restored"
	p, err := s.restored(ctx)
	switch {
	case err != nil:
		return []doctor.Finding{{Check: check, Status: doctor.Skipped, Found: fmt.Sprintf("Whether errand was restored from a backup cannot be read: %v", err)}}
	case p == nil:
		return nil
	}
	list := []doctor.Finding{{
		Check: check, Status: doctor.Warning, Found: fmt.Sprintf("errand was restored from the backup of %s.", p.Restored.UTC().Format("2006-01-02 15:04 UTC")),
		Meaning: "Webhooks are received and stored; nothing is posted, published, created or deleted.", Fix: "Check the differences below, and then run `errand resume`.",
	}}
	tasks, err := s.store.TasksIn(ctx, slices.DeleteFunc(state.Phases(), state.Phase.Terminal)...)
	if err != nil {
		return append(list, doctor.Finding{Check: check, Status: doctor.Skipped, Found: fmt.Sprintf("The open tasks cannot be read: %v", err)})
	}
	for i, t := range tasks {
		if i == maxCompared {
			list = append(list, doctor.Finding{Check: check, Status: doctor.Note, Found: fmt.Sprintf("%d more open tasks were not compared.", len(tasks)-i), Fix: "errand compares them when it is resumed."})
			break
		}
		for _, difference := range s.differences(ctx, t) {
			list = append(list, doctor.Finding{
				Check: check, Status: doctor.Note, Found: fmt.Sprintf("%s#%d: %s.", t.Repo.FullName(), t.Key.Issue, difference),
				Fix: "errand takes it into account when it is resumed. End the task with `errand cancel` if you do not want that.",
			})
		}
	}
	return append(list, s.vmDifferences(ctx, check)...)
}

// maxCompared is the maximum number of tasks that a report compares with GitHub, with a few calls each.
const maxCompared = 100

// differences compares a task with GitHub.
func (s *Server) differences(ctx context.Context, t *state.Task) (list []string) {
	repo := forge.RepoOf(t)
	switch i, err := s.forge.Issue(ctx, repo, t.Key.Issue); {
	case errors.Is(err, forge.ErrNotFound):
		return []string{"its issue no longer exists, or errand has no access to it"}
	case err != nil:
		return []string{fmt.Sprintf("its issue could not be read: %v", err)}
	case i.Closed:
		list = append(list, "its issue is closed")
	}
	if t.Branch.Name == "" {
		return list
	}
	pr, err := s.forge.PRByHead(ctx, repo, t.Branch.Name)
	switch {
	case err != nil:
		return append(list, fmt.Sprintf("its pull request could not be read: %v", err))
	case pr == nil:
		if t.PR != nil {
			list = append(list, fmt.Sprintf("pull request #%d was not found", t.PR.Number))
		}
		return list
	case t.PR == nil:
		list = append(list, fmt.Sprintf("GitHub has pull request #%d, which the backup does not know", pr.Number))
	case pr.Merged:
		list = append(list, fmt.Sprintf("pull request #%d is merged", pr.Number))
	case !pr.Open:
		list = append(list, fmt.Sprintf("pull request #%d is closed", pr.Number))
	}
	if t.Branch.Head != "" && pr.Head != t.Branch.Head {
		list = append(list, fmt.Sprintf("its branch is at %.12s, and at %.12s in the backup", pr.Head, t.Branch.Head))
	}
	return list
}

// vmDifferences compares the VMs with the provider.
func (s *Server) vmDifferences(ctx context.Context, check string) (list []doctor.Finding) {
	there, err := s.fleet.List(ctx)
	if err != nil {
		return []doctor.Finding{{Check: check, Status: doctor.Skipped, Found: fmt.Sprintf("The VMs cannot be listed: %v", err)}}
	}
	rows, err := s.store.VMs.List(ctx)
	if err != nil {
		return []doctor.Finding{{Check: check, Status: doctor.Skipped, Found: fmt.Sprintf("The rows of VMs cannot be read: %v", err)}}
	}
	known := map[string]bool{}
	for _, r := range rows {
		known[r.Name] = !r.Phase.Over()
	}
	names := map[string]bool{}
	for _, v := range there {
		if names[v.Name] = true; !known[v.Name] {
			list = append(list, doctor.Finding{
				Check: check, Status: doctor.Warning, Found: fmt.Sprintf("The VM %s (%s) carries this deployment's label, and the backup does not know it.", v.Name, v.ID),
				Meaning: "It may have work of a task, and it costs money. errand deletes it when it is seven days old.",
				Fix:     "Once you do not need it: stop errand, and `errand reap --all --dry-run` and `errand reap --all`, or delete it at the provider.",
			})
		}
	}
	for _, r := range rows {
		if !r.Phase.Over() && !r.CreatedAt.IsZero() && r.EndedAt.IsZero() && !names[r.Name] {
			list = append(list, doctor.Finding{Check: check, Status: doctor.Note, Found: fmt.Sprintf("The VM %s no longer exists.", r.Name), Fix: "Its task continues on another one."})
		}
	}
	return list
}
