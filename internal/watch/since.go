package watch

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/state"
)

// watchFact is the name of the stored watchTimes.
const watchFact = "triggers-since"

// mentionName is the name of mentions in issues' texts in watchTimes; see triggerKind.name for the others.
const mentionName = string(state.TriggerMention)

// watchTimes holds the times at which errand began to watch repositories for triggers. An older trigger was not set for errand as
// it is configured now, and does not start a task.
type watchTimes struct {
	First  time.Time                      `json:"first"`  // when errand first ran
	Listed bool                           `json:"listed"` // all repositories have been listed since
	Repos  map[int64]map[string]time.Time `json:"repos"`  // by repository and name of the trigger, in whole seconds as on GitHub
}

// watch stores since when each repository is watched for each configured trigger. Repositories that errand can no longer access are
// forgotten: should they come back, they are new.
func (s *Sweeper) watch(ctx context.Context, places map[int64]place, complete bool) error {
	if err := s.readWatchTimes(ctx); err != nil {
		return err
	}
	next := watchTimes{First: s.since.First, Listed: s.since.Listed || complete, Repos: map[int64]map[string]time.Time{}}
	if !complete {
		maps.Copy(next.Repos, s.since.Repos)
	}
	for id := range places {
		next.Repos[id] = s.watchTimesOf(id)
	}
	s.forgetOld(next.Repos)
	if s.sinceStored && next.Listed == s.since.Listed && maps.EqualFunc(next.Repos, s.since.Repos, maps.Equal) {
		return nil
	}
	if err := s.storeWatchTimes(ctx, next); err != nil {
		s.cfg.Log.Warn().Err(err).Msg("failed to store since when repositories are watched; the next sweep tries again")
	}
	return ctx.Err()
}

// watchTimesOf returns since when a repository is watched for the configured triggers. A trigger that is new in a known repository
// was configured when errand started.
func (s *Sweeper) watchTimesOf(repo int64) map[string]time.Time {
	known, times := s.since.Repos[repo], map[string]time.Time{}
	begin := s.started
	switch {
	case known == nil && !s.since.Listed:
		begin = s.since.First
	case known == nil:
		begin = s.cfg.Now()
	}
	names := []string{mentionName}
	for _, k := range s.triggerKinds() {
		names = append(names, k.name())
	}
	for _, name := range names {
		at, ok := known[name]
		if !ok {
			at = begin.UTC().Truncate(time.Second)
		}
		times[name] = at
	}
	return times
}

// readWatchTimes reads the times from the store if necessary. If the store has none, errand has never run before.
func (s *Sweeper) readWatchTimes(ctx context.Context) error {
	if s.since != nil {
		return nil
	}
	data, err := s.cfg.Store.Fact(ctx, watchFact)
	if err != nil {
		return fmt.Errorf("read since when repositories are watched: %w", err)
	}
	times := watchTimes{First: s.started.UTC()}
	if data != nil {
		if err := json.Unmarshal(data, &times); err != nil {
			return fmt.Errorf("read since when repositories are watched: %w", err)
		}
	}
	s.since, s.sinceStored = &times, data != nil
	return nil
}

// storeWatchTimes replaces the times, also if they cannot be stored.
func (s *Sweeper) storeWatchTimes(ctx context.Context, times watchTimes) error {
	s.since, s.sinceStored = &times, false
	data, err := json.Marshal(times)
	if err == nil {
		err = s.cfg.Store.SetFact(ctx, watchFact, data)
	}
	if err != nil {
		return fmt.Errorf("store since when repositories are watched: %w", err)
	}
	s.sinceStored = true
	return nil
}

// Unstarted is an open issue that had errand's label or assignee before errand watched its repository for that. errand starts only
// when somebody triggers it again, or by Adopt.
type Unstarted struct {
	Repo   string // OWNER/NAME
	Number int
	Title  string
	URL    string
	Via    state.TriggerVia
}

// triggerOn is one kind of trigger on one issue.
type triggerOn struct {
	issue int
	via   state.TriggerVia
}

// oldTriggers are the old triggers that a sweep found in a repository.
type oldTriggers struct {
	list []Unstarted
	seen map[triggerOn]time.Time // the times of the issues' last changes
	// before has those of the previous sweep: an issue that has not changed since need not be read.
	before map[triggerOn]time.Time
}

// isKnown reports whether the previous sweep found the same old trigger, and the issue has not changed since.
func (o *oldTriggers) isKnown(i forge.Issue, kind triggerKind) bool {
	at, ok := o.before[triggerOn{i.Number, kind.via}]
	return ok && at.Equal(i.UpdatedAt)
}

// add adds an old trigger. An issue is listed once.
func (o *oldTriggers) add(p place, i forge.Issue, kind triggerKind) {
	o.seen[triggerOn{i.Number, kind.via}] = i.UpdatedAt
	if !slices.ContainsFunc(o.list, func(u Unstarted) bool { return u.Number == i.Number }) {
		o.list = append(o.list, Unstarted{Repo: p.repo.FullName(), Number: i.Number, Title: i.Title, URL: i.URL, Via: kind.via})
	}
}

func (s *Sweeper) oldIn(repo int64) oldTriggers {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.old[repo]
}

func (s *Sweeper) setOld(repo int64, found oldTriggers) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found.before = nil
	s.old[repo] = found
}

// forgetOld forgets the old triggers of all repositories except the given ones.
func (s *Sweeper) forgetOld(repos map[int64]map[string]time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.old, func(repo int64, _ oldTriggers) bool { return repos[repo] == nil })
	maps.DeleteFunc(s.mentionsRead, func(repo int64, _ time.Time) bool { return repos[repo] == nil })
}

// Unstarted returns the issues with an old trigger that the last sweep found, by repository and number. Some of them may have got a
// task since.
func (s *Sweeper) Unstarted() []Unstarted {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Unstarted
	for _, old := range s.old {
		all = append(all, old.list...)
	}
	slices.SortFunc(all, func(a, b Unstarted) int { return cmp.Or(cmp.Compare(a.Repo, b.Repo), cmp.Compare(a.Number, b.Number)) })
	return all
}
