// Package cloud runs the conformance suite of package fleettest on the provider of
// Hetzner's VMs, over the stand-in for its API with boxes of this host behind the
// servers: everything is real but the API and the wall around a VM.
//
// It stands here and not beside the provider because the boxes come from the demo,
// which is made of everything, the provider too. Package rootbox runs the same
// suite on machines with an address, a kernel's isolation and cloud-init.
package cloud
