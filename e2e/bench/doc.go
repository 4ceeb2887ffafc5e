// Package bench holds errand's figures: what a life costs in calls to GitHub, how fast webhooks are
// taken, how large and how quick a full store is.
//
// What is counted is held by ordinary tests, with the numbers that stand in docs/performance.md. What
// is timed is printed by `make bench` beside what it is compared to, and no test depends on it. Start
// reading at TestCallsOfALife, then at the benchmarks.
package bench
