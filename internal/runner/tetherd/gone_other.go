//go:build !linux

package tetherd

import "net"

// gone is not available on this system.
func gone(net.Conn) bool { return false }
