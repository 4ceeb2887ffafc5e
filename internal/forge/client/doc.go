// Package client makes calls of GitHub's API as one App: it knows tokens, rate limits, pacing, retries and errors, but
// not what the calls are for.
//
// All requests of all installations pass through one transport (transport.go). It checks GitHub's limits, paces writes
// (pace.go), removes secrets from what is sent (redact.go), repeats only what may be repeated, and counts. Every
// failure is an [*Error] that says whether trying again helps, whether an effect may have happened, and what a person
// can do.
//
// GraphQL is posted without a library, because the types and paths of its errors matter. Start with [Client.Read] and
// [Operation].
package client
