// Package leak proves that no VM, image, key or address exists that the store does not know, and
// that none is missing. The real fleet, the real provider and the real store run against a simulated
// Hetzner API with a virtual clock. They are killed at any call and any commit, and the API loses answers,
// executes orders late, and has no capacity at times.
//
// It contains tests only. Start reading at TestNothingLeaks.
package leak
