package box

import (
	"context"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// KillSupervisor kills a supervisor that holds its sandbox but does not respond. The kernel reports the listener of the
// control socket; it is alive because the caller has seen that the sandbox's lock is held. The sandbox dies with it.
func KillSupervisor(ctx context.Context, rec Record) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", rec.ControlSocket)
	if err != nil {
		return err
	}
	defer conn.Close()
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return err
	}
	var peer *unix.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) {
		peer, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return err
	}
	if credErr != nil {
		return fmt.Errorf("read which process listens: %w", credErr)
	}
	if peer.Pid <= 1 || int(peer.Uid) != os.Getuid() { // 0 and below would mean process groups
		return fmt.Errorf("process %d of user %d listens, which is not one of errand's supervisors", peer.Pid, peer.Uid)
	}
	return unix.Kill(int(peer.Pid), unix.SIGKILL)
}
