package watch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/state"
)

// Lost is what the sweeps ask GitHub.
type Lost interface {
	deliveries
	issueReader
	Installations(ctx context.Context) ([]forge.Installation, error)
	InstallationRepos(ctx context.Context, installation int64) ([]state.Repo, error)
}

type deliveries interface {
	FailedDeliveries(ctx context.Context, since time.Time) ([]forge.Delivery, error)
	HookDelivery(ctx context.Context, id int64) (event, guid string, payload []byte, err error)
}

type issueReader interface {
	OpenIssuesFor(ctx context.Context, r forge.Repo, want forge.Filter) ([]forge.Issue, error)
	IssueActor(ctx context.Context, r forge.Repo, number int, what, subject string) (state.Person, time.Time, error)
	IssueText(ctx context.Context, r forge.Repo, node string) (forge.CommentView, error)
	Issue(ctx context.Context, r forge.Repo, number int) (forge.Issue, error)
	PR(ctx context.Context, r forge.Repo, number int) (forge.PR, error)
}

// Inserter stores a delivery that was fetched, as if it had come by itself.
type Inserter interface {
	Insert(ctx context.Context, guid, event string, payload []byte) error
}

// SweeperConfig configures a Sweeper.
type SweeperConfig struct {
	Store interface {
		Reader
		Applier
		HasDelivery(ctx context.Context, guid string) (bool, error)
	}
	GitHub          Lost
	Inbox           Inserter
	Log             zerolog.Logger
	Now             func() time.Time
	BotID           int64
	BotLogin        string
	Assignee, Label string
	Deliveries      time.Duration // between sweeps for lost webhooks (5 min)
	State           time.Duration // between comparisons with GitHub's state (15 min)
	GoneAfter       time.Duration // an issue that cannot be read for so long is gone (1 h)
}

// Sweeper finds what was missed: webhooks that GitHub could not deliver, and states that no webhook
// told us of. Events are hints; GitHub's present state is the truth.
type Sweeper struct {
	cfg SweeperConfig
	// missing has since when an issue cannot be read. It is forgotten at a restart.
	missing map[state.TaskKey]time.Time
}

// NewSweeper returns a Sweeper.
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
	return &Sweeper{cfg: cfg, missing: map[state.TaskKey]time.Time{}}
}

// kept is how far back GitHub keeps deliveries.
const kept = 72 * time.Hour

// Run sweeps at the start and then now and again until ctx ends.
func (s *Sweeper) Run(ctx context.Context) error {
	var lastState time.Time
	ctx = forge.WithPurpose(ctx, forge.ForSweep)
	for {
		if err := s.deliveries(ctx); err != nil && ctx.Err() == nil {
			s.cfg.Log.Warn().Err(err).Msg("sweep for lost webhooks")
		}
		if s.cfg.Now().Sub(lastState) >= s.cfg.State {
			lastState = s.cfg.Now()
			if err := s.state(ctx); err != nil && ctx.Err() == nil {
				s.cfg.Log.Warn().Err(err).Msg("compare with GitHub's state")
			}
		}
		if !pause(ctx, min(s.cfg.Deliveries, s.cfg.State), nil) {
			return nil
		}
	}
}

// deliveries fetches webhooks whose every delivery failed. One that cannot be had keeps none of the
// others away.
func (s *Sweeper) deliveries(ctx context.Context) error {
	failed, err := s.cfg.GitHub.FailedDeliveries(ctx, s.cfg.Now().Add(-kept))
	if err != nil {
		return err
	}
	var errs []error
	for _, d := range failed {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		errs = append(errs, s.fetch(ctx, d))
	}
	return errors.Join(errs...)
}

// fetch stores a failed delivery that is not known yet.
func (s *Sweeper) fetch(ctx context.Context, d forge.Delivery) error {
	known, err := s.cfg.Store.HasDelivery(ctx, d.GUID)
	if err != nil {
		return fmt.Errorf("look a delivery up: %w", err)
	}
	if known {
		return nil
	}
	event, guid, payload, err := s.cfg.GitHub.HookDelivery(ctx, d.ID)
	if err != nil {
		return fmt.Errorf("fetch delivery %s: %w", d.GUID, err)
	}
	if err := s.cfg.Inbox.Insert(ctx, guid, event, payload); err != nil {
		return err
	}
	s.cfg.Log.Info().Str("delivery", guid).Str("event", event).Msg("fetched a webhook that had not arrived")
	return nil
}

// state compares every task, and every issue that should have one, with GitHub.
func (s *Sweeper) state(ctx context.Context) error {
	open, err := s.cfg.Store.OpenTasks(ctx)
	if err != nil {
		return fmt.Errorf("list open tasks: %w", err)
	}
	for _, t := range open {
		if err := s.task(ctx, t); err != nil && ctx.Err() == nil {
			s.cfg.Log.Warn().Err(err).Str("task", t.Key.String()).Msg("compare a task with GitHub")
		}
	}
	installations, err := s.cfg.GitHub.Installations(ctx)
	if err != nil {
		return err
	}
	for _, in := range installations {
		if in.Suspended {
			continue
		}
		repos, err := s.cfg.GitHub.InstallationRepos(ctx, in.ID)
		if err != nil && ctx.Err() == nil { // it may have been suspended just now
			s.cfg.Log.Warn().Err(err).Int64("installation", in.ID).Msg("list an installation's repositories")
		}
		for _, r := range repos {
			if err := s.renamed(ctx, open, r); err != nil {
				return err
			}
			if err := s.triggers(ctx, in.ID, r); err != nil && ctx.Err() == nil { // the others are looked at all the same
				s.cfg.Log.Warn().Err(err).Str("repository", r.FullName()).Msg("look for issues without a task")
			}
		}
	}
	return nil
}

// task reports how an issue or pull request differs from what the task knows.
func (s *Sweeper) task(ctx context.Context, t *state.Task) error {
	repo := forge.RepoOf(t)
	i, err := s.cfg.GitHub.Issue(ctx, repo, t.Key.Issue)
	if err != nil {
		return s.unreadable(ctx, t, err)
	}
	delete(s.missing, t.Key)
	var events []state.Event
	if t.PR != nil {
		pr, err := s.cfg.GitHub.PR(ctx, repo, t.PR.Number)
		if err != nil {
			return err
		}
		if !pr.Open {
			events = append(events, state.Event{Kind: state.EventPRClosed, Merged: pr.Merged, By: pr.MergedBy})
		}
	}
	if i.Closed && len(events) == 0 {
		events = append(events, state.Event{Kind: state.EventIssueClosed})
	}
	if t.Trigger.Via == "assigned" && !s.assigned(i) || t.Trigger.Via == "label" && !s.labelled(i) {
		events = append(events, state.Event{Kind: state.EventUntriggered, Via: t.Trigger.Via})
	}
	for _, e := range events {
		e.Task = t.Key
		if _, err := s.cfg.Store.Apply(ctx, e, state.Ack{}); err != nil {
			return fmt.Errorf("report %s: %w", e.Kind, err)
		}
	}
	return nil
}

// renamed tells tasks what their repository is called now.
func (s *Sweeper) renamed(ctx context.Context, open []*state.Task, r state.Repo) error {
	for _, t := range open {
		if t.Key.Repo != r.ID || t.Repo.FullName() == r.FullName() {
			continue
		}
		if _, err := s.cfg.Store.Apply(ctx, state.Event{Kind: state.EventRenamed, Task: t.Key, Repo: &r}, state.Ack{}); err != nil {
			return fmt.Errorf("report a new name: %w", err)
		}
	}
	return nil
}

// unreadable ends a task whose issue, repository or installation has been out of reach for long: the
// webhook that says so may be lost, and nobody could tell the bot any more. GitHub itself now and
// then denies for a while what is there, so that one answer is not believed.
func (s *Sweeper) unreadable(ctx context.Context, t *state.Task, err error) error {
	if !errors.Is(err, forge.ErrNotFound) && !errors.Is(err, forge.ErrNotInstalled) {
		return err
	}
	since, known := s.missing[t.Key]
	if !known {
		s.missing[t.Key] = s.cfg.Now()
		return err
	}
	if s.cfg.Now().Sub(since) < s.cfg.GoneAfter {
		return err
	}
	delete(s.missing, t.Key)
	s.cfg.Log.Warn().Err(err).Str("task", t.Key.String()).Msg("the issue has been out of reach for long: its task ends")
	_, err = s.cfg.Store.Apply(ctx, state.Event{Kind: state.EventGone, Task: t.Key}, state.Ack{})
	return err
}

func (s *Sweeper) assigned(i forge.Issue) bool {
	for _, p := range i.Assignees {
		if p.ID == s.cfg.BotID || s.cfg.Assignee != "" && strings.EqualFold(p.Login, s.cfg.Assignee) {
			return true
		}
	}
	return false
}

func (s *Sweeper) labelled(i forge.Issue) bool {
	for _, l := range i.Labels {
		if strings.EqualFold(l, s.cfg.Label) {
			return true
		}
	}
	return false
}

// triggers reports issues that carry our assignee or label and have no task. Who put it there is
// taken from the issue's events: it is that person whose permission counts.
func (s *Sweeper) triggers(ctx context.Context, installation int64, r state.Repo) error {
	repo := forge.Repo{Installation: installation, Owner: r.Owner, Name: r.Name, ID: r.ID}
	type want struct {
		filter        forge.Filter
		via, what, of string
	}
	var wants []want
	if s.cfg.Assignee != "" {
		wants = append(wants, want{forge.Filter{Assignee: s.cfg.Assignee}, "assigned", "assigned", s.cfg.Assignee})
	}
	if s.cfg.Label != "" {
		wants = append(wants, want{forge.Filter{Label: s.cfg.Label}, "label", "labeled", s.cfg.Label})
	}
	for _, w := range wants {
		issues, err := s.cfg.GitHub.OpenIssuesFor(ctx, repo, w.filter)
		if err != nil {
			return err
		}
		for _, i := range issues {
			if err := s.found(ctx, repo, r, i, w.via, w.what, w.of); err != nil {
				return err
			}
		}
	}
	return nil
}

// found reports one issue, unless it has a task or its task ended after the trigger: the end is the
// later word.
func (s *Sweeper) found(ctx context.Context, repo forge.Repo, r state.Repo, i forge.Issue, via, what, subject string) error {
	key := state.TaskKey{Repo: r.ID, Issue: i.Number}
	t, err := s.cfg.Store.Task(ctx, key)
	if err != nil || t != nil && !t.Ended() {
		return err
	}
	by, at, err := s.cfg.GitHub.IssueActor(ctx, repo, i.Number, what, subject)
	if err != nil {
		return fmt.Errorf("find who triggered %s#%d: %w", repo.FullName(), i.Number, err)
	}
	if by.ID == 0 || t != nil && !at.After(t.Since) {
		return nil
	}
	issue := i.Issue
	if issue.Unvouched, err = s.changedSince(ctx, repo, i, at); err != nil {
		return fmt.Errorf("see whether %s#%d was edited: %w", repo.FullName(), i.Number, err)
	}
	e := state.Event{
		Kind: state.EventTriggered, Task: key, ID: fmt.Sprintf("swept:%s:%d", via, at.Unix()), By: by, Via: via, At: at,
		Repo: &r, Installation: repo.Installation, Issue: &issue,
	}
	if _, err := s.cfg.Store.Apply(ctx, e, state.Ack{}); err != nil {
		return fmt.Errorf("report a trigger that had not arrived: %w", err)
	}
	s.cfg.Log.Info().Str("task", key.String()).Msg("found an issue without its task")
	return nil
}

// changedSince reports whether title or body may be others than who triggered saw: there is no
// webhook that has them as they were.
func (s *Sweeper) changedSince(ctx context.Context, repo forge.Repo, i forge.Issue, at time.Time) (bool, error) {
	text, err := s.cfg.GitHub.IssueText(ctx, repo, i.Node)
	if err != nil || !text.EditedAt.Before(at) {
		return true, err
	}
	_, renamed, err := s.cfg.GitHub.IssueActor(ctx, repo, i.Number, "renamed", "")
	if errors.Is(err, forge.ErrNotFound) {
		return false, nil
	}
	return !renamed.Before(at), err
}
