package secretscan

import (
	"slices"
	"sync"
	"sync/atomic"
)

// maxLearned bounds the number of learned values; the newest are kept. Renewed tokens live for hours, so the dropped
// ones have expired.
const maxLearned = 64

// learned holds the values that were added while the program ran.
type learned struct {
	mu     sync.Mutex // held by writers
	values []string
	set    atomic.Pointer[knownSet]
}

// Learn adds values to search for, such as renewed tokens. Values that were learned before become the newest again.
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
