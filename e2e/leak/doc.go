// Package leak proves that no VM, image, key or address is left over that the store does not know, and
// that none is missing: the real fleet, the real provider and the real store against a stand-in of
// Hetzner's API with a clock of its own, killed at any call and any commit, with answers that get lost,
// orders that are carried out late and capacity that is not there.
//
// It holds tests only. Start reading at TestNothingLeaks.
package leak
