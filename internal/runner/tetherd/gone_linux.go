package tetherd

import (
	"net"

	"golang.org/x/sys/unix"
)

// tcpEstablished is the kernel's number for a connection whose both ends are open.
const tcpEstablished = 1

// gone reports whether the other end of a held connection has hung up, which reading would not show
// before the request that it left behind. Nobody would take the answer.
func gone(conn net.Conn) bool {
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
