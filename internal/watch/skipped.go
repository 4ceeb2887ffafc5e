package watch

import (
	"errors"
	"maps"
	"slices"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/forge"
)

// skipped counts the reads of one sweep that failed because of a GitHub rate limit, so that each limit is logged once.
type skipped struct {
	limits map[limitKey]*skippedCount
}

type limitKey struct {
	installation int64
	kind         forge.LimitKind
}

type skippedCount struct {
	last                *forge.LimitError
	tasks, repositories int
}

// task counts err if it is a rate limit error of a task, and reports whether it is.
func (s *skipped) task(err error) bool {
	c := s.of(err)
	if c != nil {
		c.tasks++
	}
	return c != nil
}

// repository does the same for a repository.
func (s *skipped) repository(err error) bool {
	c := s.of(err)
	if c != nil {
		c.repositories++
	}
	return c != nil
}

func (s *skipped) of(err error) *skippedCount {
	var limit *forge.LimitError
	if !errors.As(err, &limit) {
		return nil
	}
	if s.limits == nil {
		s.limits = map[limitKey]*skippedCount{}
	}
	key := limitKey{limit.Installation, limit.Kind}
	if s.limits[key] == nil {
		s.limits[key] = &skippedCount{}
	}
	c := s.limits[key]
	if c.last == nil || limit.Until.After(c.last.Until) {
		c.last = limit
	}
	return c
}

// log writes one line for each limit.
func (s *skipped) log(log *zerolog.Logger) {
	for _, c := range slices.SortedFunc(maps.Values(s.limits), func(a, b *skippedCount) int { return a.last.Until.Compare(b.last.Until) }) {
		log.Warn().Str("limit", string(c.last.Kind)).Int64("installation", c.last.Installation).Time("until", c.last.Until).
			Int("tasks", c.tasks).Int("repositories", c.repositories).Msg("sweep incomplete: GitHub's rate limit is reached; the next sweep catches up")
	}
}
