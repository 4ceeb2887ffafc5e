//go:build race

package walk

// raced says that the race detector is at work.
const raced = true
