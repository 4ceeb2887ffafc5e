//go:build !linux

package tetherd

import "net"

// isPeerClosed is not available on this system.
func isPeerClosed(net.Conn) bool { return false }
