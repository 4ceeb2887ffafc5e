//go:build !race

package secrets_test

// raced says that the race detector is at work.
const raced = false
