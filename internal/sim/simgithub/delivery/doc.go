// Package delivery delivers the webhooks of the GitHub simulator: in order, signed, with a log of all attempts, and
// with faults that tests can inject, such as lost, duplicate and delayed deliveries.
//
// Start with Queue. It knows nothing of events except their names; the simulator creates the payloads.
package delivery
