// Package forge is GitHub as errand calls it: comments, reactions, permissions, pull requests and the
// publishing of commits as data.
//
// It has no memory of tasks and makes no decisions: every method is one question or one effect, for
// one Repo. What it adds to a plain client is the manner of calling. All requests of all installations go
// through one transport (transport.go) that knows GitHub's limits, waits its turn before it writes
// (pace.go), repeats only what may be repeated, and counts. Every failure is an *Error (errors.go) that
// says whether trying again helps, whether an effect may have happened, and what a person can do.
//
// Nothing is cached but tokens, the App's own identity, the GraphQL ids of repositories, and what is named
// by its content: the trees of commits. GraphQL is posted by hand, because the types and paths of its errors matter. Start reading at Forge.
package forge
