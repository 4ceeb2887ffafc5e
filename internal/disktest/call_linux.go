//go:build linux && (amd64 || arm64)

package disktest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// sayings is a directory that does not exist: the scenario reports a text by removing a file with that name in it.
const sayings = "/disktest/say/"

// asked is a decoded notification about a call.
type asked struct {
	Call
	path, to string // as in the process
	saying   string // the reported text, if this is not a real call
	fd       string // the open file, by a path for this process
	offset   int64  // of a write, -1 if unknown
	length   int64
}

// read decodes a notification while the calling thread waits.
func read(q question, kind Kind) asked {
	a := asked{Call: Call{Kind: kind}, offset: -1}
	proc := fmt.Sprintf("/proc/%d", q.pid)
	file := func(fd uint64) {
		a.fd = fmt.Sprintf("%s/fd/%d", proc, int32(fd)) //nolint:gosec // a descriptor
		a.path, _ = os.Readlink(a.fd)
	}
	at := func(dirfd, name uint64) string { return resolve(proc, int32(dirfd), text(proc, name)) } //nolint:gosec // a descriptor
	here := unix.AT_FDCWD
	switch nr := int(q.number); {
	case nr == unix.SYS_COPY_FILE_RANGE:
		file(q.args[2])
	case nr == unix.SYS_PWRITE64:
		file(q.args[0])
		a.offset, a.length = int64(q.args[3]), int64(q.args[2]) //nolint:gosec // as the call has them
	case kind == Write || kind == Truncate || kind == Sync || kind == Close:
		file(q.args[0])
	case nr == unix.SYS_OPENAT:
		if q.args[2]&unix.O_CREAT != 0 {
			a.path = at(q.args[0], q.args[1])
		}
	case nr == unix.SYS_RENAMEAT || nr == unix.SYS_RENAMEAT2:
		a.path, a.to = at(q.args[0], q.args[1]), at(q.args[2], q.args[3])
	case nr == unix.SYS_UNLINKAT || nr == unix.SYS_MKDIRAT:
		a.path = at(q.args[0], q.args[1])
	case kind == Rename:
		a.path, a.to = at(uint64(here), q.args[0]), at(uint64(here), q.args[1]) //nolint:gosec // a descriptor
	default:
		a.path = at(uint64(here), q.args[0]) //nolint:gosec // a descriptor
	}
	if rest, ok := bytes.CutPrefix([]byte(a.path), []byte(sayings)); ok {
		a.saying = string(rest)
	}
	return a
}

func resolve(proc string, dirfd int32, name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	from := fmt.Sprintf("%s/fd/%d", proc, dirfd)
	if dirfd == unix.AT_FDCWD {
		from = proc + "/cwd"
	}
	dir, _ := os.Readlink(from)
	return filepath.Join(dir, name)
}

// text reads a string from the memory of the process.
func text(proc string, at uint64) string {
	mem, err := os.Open(proc + "/mem")
	if err != nil {
		return ""
	}
	defer func() { _ = mem.Close() }()
	var all []byte
	for len(all) < unix.PathMax {
		page := make([]byte, 4096-at%4096)
		n, _ := mem.ReadAt(page, int64(at)) //nolint:gosec // an address
		part, _, whole := bytes.Cut(page[:n], []byte{0})
		all = append(all, part...)
		if whole || n == 0 {
			break
		}
		at += uint64(n) //nolint:gosec // a length
	}
	return string(all)
}
