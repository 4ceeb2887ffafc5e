package gates

import "slices"

// Numbers returns the numbers of the lines, each once, in ascending order.
func (l *Lines) Numbers() []int { return slices.Clone(l.numbers) }
