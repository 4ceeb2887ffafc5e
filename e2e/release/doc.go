// Package release tests what `make release` makes of a commit: it builds a release twice, in clones whose paths, times, modes and environments
// differ, compares every byte, and examines the archive and its lists of components as a stranger would who has downloaded them.
//
// Start reading at TestHeavyRelease.
package release
