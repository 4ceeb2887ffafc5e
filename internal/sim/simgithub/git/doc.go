// Package git keeps the repositories of the GitHub simulator: bare repositories on disk, which it reads, writes and
// serves over smart HTTP, and their large files (Git LFS). It knows git but not GitHub: who may do what is decided by
// its callers.
//
// Start with Repository. Most calls read and write loose objects and references directly (loose.go), because a git
// process takes milliseconds; everything else is left to the git command.
package git
