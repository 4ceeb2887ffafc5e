package tether

import "sync"

// turnCount counts the answers that runs got of the model, for those whose agent cannot be held to a number of
// turns by itself. It lives as long as this process: after a restart a run begins anew, within its money and time.
type turnCount struct {
	mu   sync.Mutex
	runs map[string]int
}

// maxTurnCounts bounds what is remembered; runs that ended stay in until there are so many.
const maxTurnCounts = 1000

func (c *turnCount) add(run string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.runs[run]; c.runs == nil || !known && len(c.runs) >= maxTurnCounts {
		c.runs = map[string]int{}
	}
	c.runs[run]++
}

// usedUp reports whether a run had all of its turns; 0 is no bound.
func (c *turnCount) usedUp(run string, most int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return most > 0 && c.runs[run] >= most
}
