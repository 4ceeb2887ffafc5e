package work

import (
	"os"

	"golang.org/x/sys/unix"
)

// pipeSize is how much a check may write at once before somebody reads it: as much as Linux lets every user have. Programs that
// do not wait for a full pipe, such as those of Node.js, lose at their exit what it did not take: the end of what they say.
const pipeSize = 1 << 20

// widen lets a pipe take so much, where the system allows it.
func widen(pipe *os.File) {
	raw, err := pipe.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeSize) }) // else it is as it was
}
