package changeset

// MergePath returns the state of one path in a three-way merge, given its state at the fork (the merge base of the two
// sides) and on both sides. E's zero value stands for a path that does not exist. If both sides changed it differently,
// clean is false and merged is theirs.
func MergePath[E comparable](fork, ours, theirs E) (merged E, clean bool) {
	switch {
	case ours == theirs || ours == fork:
		return theirs, true
	case theirs == fork:
		return ours, true
	}
	return theirs, false
}
