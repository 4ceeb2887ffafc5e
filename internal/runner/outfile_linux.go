package runner

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// newUnnamedFile returns a file in memory that cannot be shortened.
func newUnnamedFile() (*os.File, error) {
	const flags = unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	fd, err := unix.MemfdCreate("output", flags|unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) { // Linux before 6.3
		fd, err = unix.MemfdCreate("output", flags)
	}
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	file := os.NewFile(uintptr(fd), "output")
	if _, err := unix.FcntlInt(file.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_SEAL); err != nil {
		_ = file.Close()
		return nil, os.NewSyscallError("fcntl", err)
	}
	return file, nil
}

// punchHole frees a part of a file, which then reads as zeros. The file's size stays unchanged.
func punchHole(file *os.File, offset, length int64) error {
	return unix.Fallocate(int(file.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, offset, length)
}
