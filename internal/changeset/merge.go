package changeset

// MergePath returns the state of one path in a three-way merge, given its state at the fork (the commit
// where the two sides parted) and on both sides. A path that does not exist is E's zero value. If both
// sides changed it in different ways, clean is false and merged is theirs.
func MergePath[E comparable](fork, ours, theirs E) (merged E, clean bool) {
	switch {
	case ours == theirs || ours == fork:
		return theirs, true
	case theirs == fork:
		return ours, true
	}
	return theirs, false
}
