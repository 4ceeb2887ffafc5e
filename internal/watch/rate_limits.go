package watch

import (
	"errors"
	"maps"
	"slices"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/forge"
)

// limitedReads counts the reads of one sweep that failed because of a GitHub rate limit, so that each limit is logged once.
type limitedReads struct {
	limits map[limitKey]*limitedCount
}

type limitKey struct {
	installation int64
	kind         forge.LimitKind
}

type limitedCount struct {
	last                *forge.LimitError
	tasks, repositories int
}

// countTask counts err if it is a rate limit error of a task, and reports whether it is.
func (s *limitedReads) countTask(err error) bool {
	c := s.count(err)
	if c != nil {
		c.tasks++
	}
	return c != nil
}

// countRepository does the same for a repository.
func (s *limitedReads) countRepository(err error) bool {
	c := s.count(err)
	if c != nil {
		c.repositories++
	}
	return c != nil
}

func (s *limitedReads) count(err error) *limitedCount {
	var limit *forge.LimitError
	if !errors.As(err, &limit) {
		return nil
	}
	if s.limits == nil {
		s.limits = map[limitKey]*limitedCount{}
	}
	key := limitKey{limit.Installation, limit.Kind}
	if s.limits[key] == nil {
		s.limits[key] = &limitedCount{}
	}
	c := s.limits[key]
	if c.last == nil || limit.Until.After(c.last.Until) {
		c.last = limit
	}
	return c
}

// log writes one line for each limit.
func (s *limitedReads) log(log *zerolog.Logger) {
	for _, c := range slices.SortedFunc(maps.Values(s.limits), func(a, b *limitedCount) int { return a.last.Until.Compare(b.last.Until) }) {
		log.Warn().Str("limit", string(c.last.Kind)).Int64("installation", c.last.Installation).Time("until", c.last.Until).
			Int("tasks", c.tasks).Int("repositories", c.repositories).Msg("sweep incomplete: GitHub's rate limit is reached; the next sweep catches up")
	}
}
