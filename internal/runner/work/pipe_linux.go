package work

import (
	"os"

	"golang.org/x/sys/unix"
)

// pipeSize is the capacity of a check's output pipe in bytes, the maximum that Linux grants every user. Programs that
// do not wait for a full pipe, such as those of Node.js, lose the end of their output at exit if it does not fit.
const pipeSize = 1 << 20

// enlargePipe sets the capacity of a pipe, if the system allows it.
func enlargePipe(pipe *os.File) {
	raw, err := pipe.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeSize) }) // on failure the capacity stays unchanged
}
