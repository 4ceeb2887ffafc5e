//go:build !race

package heavytest

// Raced reports whether the race detector is enabled.
const Raced = false
