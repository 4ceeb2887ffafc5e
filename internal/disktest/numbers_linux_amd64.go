package disktest

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_X86_64

// old are system calls that newer architectures lack, with their kinds.
func old() map[int]Kind {
	return map[int]Kind{unix.SYS_RENAME: Rename, unix.SYS_UNLINK: Remove, unix.SYS_MKDIR: Mkdir}
}
