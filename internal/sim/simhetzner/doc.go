// Package simhetzner is a stateful simulator of the Hetzner Cloud API: created resources are listed, take time, cost
// money and disappear when they are deleted. The real client, hcloud-go, can take a server through its whole life on
// it.
//
// It simulates servers, images, keys, firewalls, networks, volumes and addresses, the actions that change them, prices,
// capacity, account limits and a bill. The clock is injected, so that a month can pass in a moment. A [Machines]
// implementation provides the computers behind the servers; without one a server is only data. Faults are configured in
// advance, by route and count: see [Fault].
//
// No text is Hetzner's own; docs/assumptions.md lists possible differences.
//
// Start here: [New], then routes in route.go.
package simhetzner
