//go:build errand_nosync

package boltkv

// noSync has commits reported as durable that are not: see sync.go. Never run this build.
const noSync = true
