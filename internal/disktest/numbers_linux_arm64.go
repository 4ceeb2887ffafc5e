package disktest

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

// old are system calls that newer architectures lack, with their kinds.
func old() map[int]Kind { return nil }
