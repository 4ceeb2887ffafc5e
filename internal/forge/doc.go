// Package forge is GitHub as errand calls it: comments, reactions, permissions, issues, pull requests and checks.
//
// It has no memory of tasks and makes no decisions: every method is one question or one effect, for one [Repo].
// Package client below it makes the calls, and package publish puts changesets on GitHub; callers need to import
// neither. Only installations, the App's own identity, tokens and data that never changes are cached.
// Start with [Forge].
package forge
