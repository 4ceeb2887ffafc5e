// Package cloud runs the conformance suite of package fleettest on the Hetzner provider, with a simulated
// API and local sandboxes as servers: everything is real except the API and the isolation of a VM.
//
// It is not next to the provider because the sandboxes come from the demo, which imports everything,
// including the provider. Package rootbox runs the same suite on machines with their own address, kernel
// isolation and cloud-init.
//
// Start reading at newWorld in conformance_test.go.
package cloud
