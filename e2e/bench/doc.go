// Package bench measures errand: the GitHub calls of a task, the throughput of webhooks, and the size and
// speed of a full store.
//
// Ordinary tests verify the counts, with the numbers in docs/performance.md. `make bench` prints the
// timings next to their comparisons, and no test depends on them.
//
// Start reading at TestCallsOfALife, then at the benchmarks.
package bench
