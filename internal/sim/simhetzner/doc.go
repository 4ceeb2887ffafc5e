// Package simhetzner is a stand-in for the Hetzner Cloud API that remembers: what is created is listed,
// takes its time, costs money and is gone when it is deleted. The real client, hcloud-go, does a server's
// whole life on it.
//
// It tells its own facts only: servers, images, keys, firewalls, networks, volumes and addresses, the
// actions that change them, prices, capacity, an account's limits and a meter of what was ordered. Time
// is given from outside, so that a month passes in a moment. What computers stand behind the servers is
// the matter of a Machines; without one a server is a row in a table. Faults are ordered beforehand, by
// route and count: see Fault.
//
// Nothing here is Hetzner's own text; docs/assumptions.md says where it may be unlike. Start reading at
// New, then routes in route.go.
package simhetzner
