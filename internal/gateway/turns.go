package gateway

// turnCounter counts the answers of models to runs, for agents that cannot be limited to a number of turns by
// themselves. Answers in flight are counted only here. Those that were booked are in the store, too, so that a run does
// not get its turns again after a restart.
type turnCounter struct{ perRun[int] }

// add counts an answer that begins. Booked is the number of the run's answers in the store when the call was admitted.
func (c *turnCounter) add(run string, booked int) {
	c.update(run, func(n int) int { return max(n, booked) + 1 })
}

// count returns the number of answers to a run, of which booked are in the store.
func (c *turnCounter) count(run string, booked int) int { return max(c.get(run), booked) }
