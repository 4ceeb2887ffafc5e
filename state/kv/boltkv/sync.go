//go:build !errand_nosync

package boltkv

// noSync is false in every build but one: a proof builds errand with the tag errand_nosync to show
// that it would notice commits that are not synced. No configuration reaches it.
const noSync = false
