//go:build race

package secrets_test

// raced reports whether the race detector is enabled.
const raced = true
