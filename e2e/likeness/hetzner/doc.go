// Package hetzner holds the stand-in for the Hetzner Cloud API against what Hetzner publishes about it: the keys
// and kinds of its answers, and of the requests that errand sends, as described.json has them.
//
// That file is an extract of the published OpenAPI description, made by the command in the folder extract
// (cloud.spec.json at docs.hetzner.cloud is its argument); it holds no prose. A tour of all that the stand-in
// can do is judged in every `make test`; what it said while all other tests ran is judged in `make test-full`.
// Whatever is unlike stands in exceptions, with the reason. Start reading at TestTour.
package hetzner
