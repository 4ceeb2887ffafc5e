package tetherd

import (
	"net"

	"golang.org/x/sys/unix"
)

// tcpEstablished is the kernel's number for a connection that is open at both ends.
const tcpEstablished = 1

// isPeerClosed reports whether the peer of a waiting connection has hung up. Reading would report that only after the pending
// request, whose answer nobody would receive.
func isPeerClosed(conn net.Conn) bool {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return false
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return true
	}
	closed := false
	err = raw.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		closed = err == nil && info.State != tcpEstablished
	})
	return closed || err != nil
}
