//go:build !race

package walk

// raced reports whether the race detector is enabled.
const raced = false
