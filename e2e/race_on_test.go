//go:build race

package e2e

// raced reports whether the race detector is enabled.
const raced = true
