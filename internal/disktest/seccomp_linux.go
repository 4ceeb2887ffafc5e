//go:build linux && (amd64 || arm64)

package disktest

import (
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// syncs are the calls that determine the state after a power cut.
func syncs() map[int]Kind {
	calls := map[int]Kind{
		unix.SYS_FSYNC: Sync, unix.SYS_FDATASYNC: Sync,
		unix.SYS_RENAMEAT: Rename, unix.SYS_RENAMEAT2: Rename, unix.SYS_UNLINKAT: Remove, unix.SYS_MKDIRAT: Mkdir,
	}
	for nr, kind := range old() {
		calls[nr] = kind
	}
	return calls
}

// all are the calls that can be made to fail.
func all() map[int]Kind {
	calls := syncs()
	for _, nr := range []int{unix.SYS_WRITE, unix.SYS_WRITEV, unix.SYS_PWRITE64, unix.SYS_SENDFILE, unix.SYS_COPY_FILE_RANGE} {
		calls[nr] = Write
	}
	calls[unix.SYS_FTRUNCATE], calls[unix.SYS_CLOSE], calls[unix.SYS_OPENAT] = Truncate, Close, Create
	return calls
}

// listen makes the kernel notify us about these calls of this process and of its descendants. It cannot be undone.
func listen(calls map[int]Kind) (listener int, err error) {
	const (
		load, equal, give = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_RET | unix.BPF_K
		arch, number      = 4, 0 // offsets in struct seccomp_data
	)
	program := []unix.SockFilter{
		{Code: load, K: arch}, {Code: equal, K: auditArch, Jt: 1}, {Code: give, K: unix.SECCOMP_RET_ALLOW},
		{Code: load, K: number},
	}
	for nr := range calls {
		program = append(program,
			unix.SockFilter{Code: equal, K: uint32(nr), Jf: 1},
			unix.SockFilter{Code: give, K: unix.SECCOMP_RET_USER_NOTIF})
	}
	program = append(program, unix.SockFilter{Code: give, K: unix.SECCOMP_RET_ALLOW})
	if err := onAllThreads(unix.PR_SET_NO_NEW_PRIVS); err != nil {
		return 0, fmt.Errorf("set no_new_privs: %w", err)
	}
	flags := unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV |
		unix.SECCOMP_FILTER_FLAG_TSYNC | unix.SECCOMP_FILTER_FLAG_TSYNC_ESRCH
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, uintptr(flags), uintptr(unsafe.Pointer(&prog)))
	runtime.KeepAlive(program)
	if errno != 0 {
		return 0, fmt.Errorf("install seccomp filter: %w", errno)
	}
	return int(fd), nil
}

// onAllThreads sets an attribute on this thread; the filter passes it on to the other threads.
func onAllThreads(attribute int) error {
	runtime.LockOSThread() // never unlocked, because the filter is installed from this thread
	return unix.Prctl(attribute, 1, 0, 0, 0)
}

// question is struct seccomp_notif, answer struct seccomp_notif_resp.
type question struct {
	id         uint64
	pid, flags uint32
	number     int32
	arch       uint32
	ip         uint64
	args       [6]uint64
}

type answer struct {
	id    uint64
	value int64
	errno int32
	flags uint32
}

// receive waits for a notification. It returns false when no process with the filter is left.
func receive(listener int) (q question, more bool, err error) {
	for {
		ready := []unix.PollFd{{Fd: int32(listener), Events: unix.POLLIN}}
		if _, err := unix.Poll(ready, -1); err == unix.EINTR {
			continue
		} else if err != nil {
			return q, false, os.NewSyscallError("poll", err)
		}
		if ready[0].Revents&unix.POLLIN == 0 {
			return q, false, nil
		}
		q = question{}
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&q)))
		switch errno {
		case 0:
			return q, true, nil
		case unix.EINTR, unix.ENOENT: // the calling thread has ended
		default:
			return q, false, os.NewSyscallError("receive", errno)
		}
	}
}

// reply answers a notification; the calling thread may have ended.
func reply(listener int, a answer) {
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&a)))
}
