// Package publish puts a changeset on GitHub: large files, blobs, trees, commits, and the branch that points at them.
//
// Everything but moving a branch is named by its content, so it can be repeated after any failure, and is compared with
// the IDs that the VM computed. Start with [Publisher.CreateCommits].
package publish
