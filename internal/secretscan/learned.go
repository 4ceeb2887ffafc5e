package secretscan

import (
	"slices"
	"sync"
	"sync/atomic"
)

// maxLearned bounds how many learned values are looked for: those that were learned last. Tokens that are renewed
// live for hours, so that the ones that are forgotten are worth nothing any more.
const maxLearned = 64

// learned are the values that came up while the program ran.
type learned struct {
	mu     sync.Mutex // of the writers
	values []string
	set    atomic.Pointer[knownSet]
}

// Learn has the scanner look for further values from now on, such as tokens that were renewed. Those that it knows
// already are moved to the front of what it learned.
func (s *Scanner) Learn(values ...string) {
	l := &s.learned
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, v := range values {
		l.values = append(slices.DeleteFunc(l.values, func(old string) bool { return old == v }), v)
	}
	l.values = slices.Clone(l.values[max(len(l.values)-maxLearned, 0):])
	set := newKnownSet(l.values)
	l.set.Store(&set)
}

func (l *learned) find(text string) []Finding {
	if set := l.set.Load(); set != nil {
		return set.find(text)
	}
	return nil
}

func (l *learned) findCut(text string) []Finding {
	if set := l.set.Load(); set != nil {
		return set.findCut(text)
	}
	return nil
}
