package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/machine"
	"github.com/errand-bot/errand/state/store"
)

// SweepReader is the part of GitHub's API that sweeps use.
type SweepReader interface {
	Installations(ctx context.Context) ([]forge.Installation, error)
	InstallationRepos(ctx context.Context, installation int64) ([]state.Repo, error)
	CheckInstalled(ctx context.Context, repo int64) error

	Deliveries(ctx context.Context, since time.Time) ([]forge.Delivery, error)
	HookDelivery(ctx context.Context, id int64) (event, guid string, payload []byte, err error)

	Permission(ctx context.Context, r forge.Repo, login string, id int64) (state.Permission, error)
	OpenIssuesFor(ctx context.Context, r forge.Repo, want forge.IssueFilter) ([]forge.Issue, error)
	IssueActor(ctx context.Context, r forge.Repo, number int, what, subject string) (state.Person, time.Time, error)
	IssueText(ctx context.Context, r forge.Repo, node string) (forge.Comment, error)
	Issue(ctx context.Context, r forge.Repo, number int) (forge.Issue, error)
	PR(ctx context.Context, r forge.Repo, number int) (forge.PR, error)
	PlanSnapshot(ctx context.Context, r forge.Repo, comment, said, branch string) (forge.PlanSnapshot, error)

	CommentsSince(ctx context.Context, r forge.Repo, number int, since time.Time) ([]forge.Comment, error)
	Reviews(ctx context.Context, r forge.Repo, number int) ([]forge.Review, error)
}

// An Inserter stores a fetched delivery as if GitHub had sent it.
type Inserter interface {
	Insert(ctx context.Context, guid, event string, payload []byte) error
}

// SweeperConfig configures a [Sweeper].
type SweeperConfig struct {
	Store interface {
		Reader
		Applier
		HasDelivery(ctx context.Context, guid string) (bool, error)
		Fact(ctx context.Context, name string) ([]byte, error)
		SetFact(ctx context.Context, name string, value []byte) error
	}
	GitHub          SweepReader
	Inbox           Inserter
	Log             zerolog.Logger
	Now             func() time.Time
	BotID           int64
	BotLogin        string
	Slug            string // people mention errand as @slug
	Assignee, Label string
	Deliveries      time.Duration // interval of sweeps for lost webhooks (5 min)
	ReadWebhooks    time.Duration // interval of reading all webhooks from GitHub's log; 0 if GitHub sends them to errand
	State           time.Duration // interval of comparisons with GitHub's state (15 min)
	GoneAfter       time.Duration // time after which an unreadable issue counts as gone (1 h)
	// LostFrom and LostUntil bound the time whose webhooks were answered by an errand with another store, if this one is a copy
	// from a backup: also those that GitHub delivered are fetched. Both are zero otherwise.
	LostFrom, LostUntil time.Time
}

// A Sweeper finds missed changes: webhooks that GitHub could not deliver, and state changes for which no webhook
// arrived. Events are hints; GitHub's current state is authoritative.
//
// Unstarted, Adopt and ReadWebhooks may be called at any time, everything else only by one goroutine.
type Sweeper struct {
	cfg     SweeperConfig
	started time.Time
	since   *watchTimes // nil until it is read from the store
	// sinceStored reports that the store has since.
	sinceStored bool
	// mentionsRead holds when new issues of a repository were last read. It is lost at a restart.
	mentionsRead map[int64]time.Time
	// unreachableSince holds since when issues have been unreadable. It is lost at a restart.
	unreachableSince map[state.TaskKey]time.Time
	// lastRead holds when a task's conversations were last read. It is lost at a restart.
	lastRead map[state.TaskKey]readTimes
	// comparesHeads is set by SweepRestored.
	comparesHeads bool

	mu  sync.Mutex
	old map[int64]oldTriggers // by repository
}

// NewSweeper returns a [Sweeper].
func NewSweeper(cfg SweeperConfig) *Sweeper {
	if cfg.Deliveries == 0 {
		cfg.Deliveries = 5 * time.Minute
	}
	if cfg.State == 0 {
		cfg.State = 15 * time.Minute
	}
	if cfg.GoneAfter == 0 {
		cfg.GoneAfter = time.Hour
	}
	return &Sweeper{
		cfg: cfg, started: cfg.Now(), mentionsRead: map[int64]time.Time{}, old: map[int64]oldTriggers{},
		unreachableSince: map[state.TaskKey]time.Time{}, lastRead: map[state.TaskKey]readTimes{},
	}
}

// Run sweeps at the start and then periodically until ctx ends.
func (s *Sweeper) Run(ctx context.Context) error {
	var lastState time.Time
	ctx = forge.WithPurpose(ctx, forge.ForSweep)
	for {
		if err := s.fetchLost(ctx); err != nil && ctx.Err() == nil {
			s.cfg.Log.Warn().Err(err).Msg("failed to sweep for lost webhooks")
		}
		if s.cfg.Now().Sub(lastState) >= s.cfg.State {
			lastState = s.cfg.Now()
			if _, err := s.compareAll(ctx); err != nil && ctx.Err() == nil {
				s.cfg.Log.Warn().Err(err).Msg("failed to compare with GitHub's state")
			}
		}
		if !pause(ctx, min(s.cfg.Deliveries, s.cfg.State), nil) {
			return nil
		}
	}
}

// compareAll compares every task, and every issue that should have one, with GitHub. It logs the errors of single tasks and repositories,
// and returns their number.
func (s *Sweeper) compareAll(ctx context.Context) (f failures, err error) {
	places, complete, unlisted := s.places(ctx)
	var limits limitedReads
	open := map[state.TaskKey]bool{}
	err = s.cfg.Store.EachOpen(ctx, func(l store.Listed) error {
		open[l.Key] = true
		t, err := l.Load()
		if err == nil {
			err = s.updatePlace(ctx, t, places)
		}
		if err == nil {
			err = s.compareTask(ctx, t)
		}
		f.count(err)
		if err != nil && ctx.Err() == nil && !limits.countTask(err) {
			s.cfg.Log.Warn().Err(err).Str("task", l.Key.String()).Msg("failed to compare a task with GitHub")
		}
		return ctx.Err()
	})
	if err != nil {
		return f, fmt.Errorf("list the open tasks: %w", err)
	}
	maps.DeleteFunc(s.lastRead, func(k state.TaskKey, _ readTimes) bool { return !open[k] })
	// A restarted task starts without old denials.
	maps.DeleteFunc(s.unreachableSince, func(k state.TaskKey, _ time.Time) bool { return !open[k] })
	if err := s.watch(ctx, places, complete); err != nil {
		return f, err
	}
	for _, p := range slices.SortedFunc(maps.Values(places), func(a, b place) int { return cmp.Compare(a.repo.ID, b.repo.ID) }) {
		err := errors.Join(s.reportLostTriggers(ctx, p), s.storeLostMentions(ctx, p))
		f.count(err)
		// An error does not affect other repositories.
		if err != nil && ctx.Err() == nil && !limits.countRepository(err) {
			s.cfg.Log.Warn().Err(err).Str("repository", p.repo.FullName()).Msg("failed to look for issues without a task")
		}
	}
	limits.log(&s.cfg.Log)
	return f, unlisted
}

// failures counts the tasks and repositories that could not be compared, and those of them that GitHub will refuse again.
type failures struct{ all, refused int }

func (f *failures) count(err error) {
	if err == nil {
		return
	}
	f.all++
	if forge.IsPermanent(err) {
		f.refused++
	}
}

// place is a repository's current name and installation.
type place struct {
	installation int64
	repo         state.Repo
}

// places returns the repositories that errand can access, by ID. It omits installations that cannot be listed; complete is
// false then.
func (s *Sweeper) places(ctx context.Context) (places map[int64]place, complete bool, err error) {
	places, complete = map[int64]place{}, true
	installations, err := s.cfg.GitHub.Installations(ctx)
	if err != nil {
		return nil, false, err
	}
	for _, in := range installations {
		if in.Suspended {
			continue
		}
		repos, err := s.cfg.GitHub.InstallationRepos(ctx, in.ID)
		complete = complete && err == nil
		if err != nil && ctx.Err() == nil { // it may have just been suspended
			s.cfg.Log.Warn().Err(err).Int64("installation", in.ID).Msg("failed to list an installation's repositories")
		}
		for _, r := range repos {
			places[r.ID] = place{in.ID, r}
		}
	}
	return places, complete, nil
}

// forgeRepo returns the repository for calls of GitHub.
func (p place) forgeRepo() forge.Repo {
	return forge.Repo{Installation: p.installation, Owner: p.repo.Owner, Name: p.repo.Name, ID: p.repo.ID}
}

// updatePlace updates a task's repository name, visibility and installation. Public repositories are readable without an installation,
// so a removed installation must be checked for explicitly.
func (s *Sweeper) updatePlace(ctx context.Context, t *state.Task, places map[int64]place) error {
	p, listed := places[t.Key.Repo]
	if !listed {
		if err := s.cfg.GitHub.CheckInstalled(ctx, t.Key.Repo); err != nil {
			return s.countUnreachable(ctx, t, err)
		}
		return nil
	}
	if p.installation == t.Installation && p.repo.FullName() == t.Repo.FullName() && p.repo.Private == t.Repo.Private {
		return nil
	}
	e := event.Event{Task: t.Key, Repo: &p.repo, Installation: p.installation, Payload: event.Renamed{}}
	if _, err := s.cfg.Store.Apply(ctx, e, store.Ack{}); err != nil {
		return fmt.Errorf("report a new name or visibility: %w", err)
	}
	t.Repo, t.Installation = p.repo, p.installation
	return nil
}

// compareTask reports how an issue or pull request differs from the task's state.
func (s *Sweeper) compareTask(ctx context.Context, t *state.Task) error {
	repo, now := forge.RepoOf(t), s.cfg.Now()
	i, err := s.cfg.GitHub.Issue(ctx, repo, t.Key.Issue)
	if err != nil {
		return s.countUnreachable(ctx, t, err)
	}
	delete(s.unreachableSince, t.Key)
	if IsTransferred(t, i) {
		return s.report(ctx, t, []event.Event{{Payload: event.IssueGone{Lost: "it was transferred"}}})
	}
	var events []event.Event
	var pull *forge.PR
	if t.PR != nil {
		pr, err := s.cfg.GitHub.PR(ctx, repo, t.PR.Number)
		if err != nil {
			return err
		}
		pull = &pr
		switch {
		case pr.Open && t.PR.State == state.PRClosed:
			events = append(events, event.Event{At: pr.UpdatedAt, Payload: event.PRReopened{Number: pr.Number, Head: pr.Head}})
		case !pr.Open && (pr.Merged || t.PR.State != state.PRClosed):
			events = append(events, event.Event{By: pr.MergedBy, At: pr.ClosedAt, Payload: event.PRClosed{Merged: pr.Merged}})
		case s.comparesHeads && pr.Open && t.Branch.Head != "" && pr.Head != t.Branch.Head:
			events = append(events, event.Event{Payload: event.Pushed{Head: pr.Head}})
		}
	}
	if pull != nil && isBaseAhead(t, *pull) {
		events = append(events, event.Event{Payload: event.BaseMoved{}})
	}
	if pull != nil && pull.Open && (pull.State().Draft != t.PR.Draft || machine.MayFinish(t, now)) { // the webhook may be lost
		draft := pull.State().Draft
		events = append(events, event.Event{Payload: event.PRChanged{Draft: &draft}})
	}
	reopened, err := s.reopenedPRs(ctx, t)
	if err != nil {
		return err
	}
	events = append(events, reopened...)
	if i.Closed && (pull == nil || !pull.Merged) {
		events = append(events, event.Event{At: i.ClosedAt, Payload: event.IssueClosed{}})
	}
	if t.Trigger.Via == state.TriggerAssigned && !s.isAssigned(i) || t.Trigger.Via == state.TriggerLabel && !s.isLabeled(i) {
		events = append(events, event.Event{Via: t.Trigger.Via, Payload: event.Untriggered{}})
	}
	switch {
	case i.Locked && !t.Locked:
		events = append(events, event.Event{Payload: event.Locked{}})
	case !i.Locked && t.Locked:
		events = append(events, event.Event{Payload: event.Unlocked{}})
	}
	if err := s.report(ctx, t, events); err != nil {
		return err
	}
	if err := s.reportUndecided(ctx, t, pull); err != nil {
		return err
	}
	if err := s.storeLostConversation(ctx, t, i, pull, now); err != nil {
		return err
	}
	return s.reportLostTick(ctx, t)
}

// isBaseAhead reports whether a task does not know yet that its pull request has a conflict with its base, or no longer has one, or lacks
// nothing but its newest commits. GitHub sends no webhook when that begins, and those about pushes may be lost.
func isBaseAhead(t *state.Task, pr forge.PR) bool {
	isNews := pr.Mergeable != nil && *pr.Mergeable == t.PR.Conflict || t.Branch.Head != "" && pr.Head != t.Branch.Head
	return pr.Open && t.Phase == state.PhasePROpen && (isNews || pr.MergeState == "behind" && t.IsMergeReady())
}

// reportUndecided has the checks of an open pull request read, once per head, that are undecided since an unknown time. Older versions did not store
// it, and may have stopped reading them.
func (s *Sweeper) reportUndecided(ctx context.Context, t *state.Task, pr *forge.PR) error {
	last := s.lastRead[t.Key]
	if pr == nil || !pr.Open || !t.PR.Undecided.IsZero() || t.PR.Checks != "pending" && t.PR.Checks != "unknown" || last.undecided == t.Branch.Head {
		return nil
	}
	last.undecided = t.Branch.Head
	s.lastRead[t.Key] = last
	return s.report(ctx, t, []event.Event{{Payload: event.ChecksChanged{}}})
}

// reopenedPRs reports the replaced pull requests of a task that are open, so that they are closed again.
func (s *Sweeper) reopenedPRs(ctx context.Context, t *state.Task) (events []event.Event, err error) {
	for _, r := range t.Replaced {
		if r.Number == 0 {
			continue
		}
		pr, err := s.cfg.GitHub.PR(ctx, forge.RepoOf(t), r.Number)
		if errors.Is(err, forge.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if pr.Open {
			events = append(events, event.Event{At: pr.UpdatedAt, Payload: event.PRReopened{Number: pr.Number, Head: pr.Head}})
		}
	}
	return events, nil
}

// IsTransferred reports whether GitHub returned a different issue, because it redirects from a transferred issue to the new
// one.
func IsTransferred(t *state.Task, i forge.Issue) bool {
	return i.Node != t.IssueNode && isElsewhere(t.Repo.FullName(), t.Key.Issue, i)
}

// isElsewhere reports whether an issue has another address than the one under which it was read.
func isElsewhere(repo string, number int, i forge.Issue) bool {
	here := fmt.Sprintf("/%s/issues/%d", repo, number)
	return i.URL != "" && !strings.HasSuffix(strings.ToLower(i.URL), strings.ToLower(here))
}

// report applies the events found for a task.
func (s *Sweeper) report(ctx context.Context, t *state.Task, events []event.Event) error {
	for _, e := range events {
		e.Task = t.Key
		if _, err := s.cfg.Store.Apply(ctx, e, store.Ack{}); err != nil {
			return fmt.Errorf("report %s: %w", e.Kind(), err)
		}
	}
	return nil
}

// countUnreachable ends a task whose issue, repository or installation has been unreachable for GoneAfter: the webhook for
// the removal may be lost, and nobody could give errand commands there. GitHub sometimes denies access to existing
// issues for a while, so a single denial is not sufficient.
func (s *Sweeper) countUnreachable(ctx context.Context, t *state.Task, err error) error {
	if !errors.Is(err, forge.ErrNotFound) && !errors.Is(err, forge.ErrNotInstalled) {
		return err
	}
	since, known := s.unreachableSince[t.Key]
	if !known {
		s.unreachableSince[t.Key] = s.cfg.Now()
		return err
	}
	if s.cfg.Now().Sub(since) < s.cfg.GoneAfter {
		return err
	}
	delete(s.unreachableSince, t.Key)
	s.cfg.Log.Warn().Err(err).Str("task", t.Key.String()).Msg("issue unreachable for too long; ending its task")
	_, err = s.cfg.Store.Apply(ctx, event.Event{
		Task: t.Key, Payload: event.AccessLost{Lost: "its issue was unreachable for too long"},
	}, store.Ack{})
	return err
}
