// Package hetzner compares the simulator of the Hetzner Cloud API with the description that Hetzner publishes: the keys
// and types of its answers, and of the requests that errand sends, according to described.json.
//
// That file is an extract of the published OpenAPI description, made by the command in the folder extract (its argument
// is cloud.spec.json from docs.hetzner.cloud); it contains no prose. Every `make test` checks a tour of all functions
// of the simulator; `make test-full` checks its answers during all other tests. Differences are listed in exceptions,
// with the reason. Start reading at TestTour.
package hetzner
