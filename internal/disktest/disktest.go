// Package disktest simulates disk errors and power cuts in tests, without root and without other programs.
//
// Run plays a scenario in a separate process, which runs the same test binary. The kernel notifies the test, by
// seccomp, before each system call of that process that writes, syncs, names or removes a file. So the test can make
// each of these calls fail, and it knows the state that a power cut would leave: the content of each file and the names
// in each directory at their last sync. Small instead gives a scenario a real small file system, to test full disks.
//
// Start reading at Disk. Where the kernel does not permit interception, the test is skipped with the reason.
package disktest

import (
	"os"
	"syscall"
	"testing"
)

// Disk is a test with disk errors and power cuts.
type Disk struct {
	// Play is the scenario. It runs in the other process with an initially empty directory, and calls Say to report the
	// guarantees to check. Processes that it leaves running are ended with it.
	Play func(t *testing.T, dir string)
	// Fail returns the error of a call, or 0 to let it succeed. It is called before each call, sequentially. If Fail is
	// nil, all calls succeed.
	Fail func(c Call, said []string) syscall.Errno
	// Check checks the directory after a power cut, given the texts reported by then. It is called for each moment at
	// which the result may differ; nil means no check.
	Check func(t *testing.T, dir string, said []string)
	// Ignore lists directories below the scenario's that are ignored.
	Ignore []string
	// Trace makes Run return all calls; otherwise it returns nil.
	Trace bool
}

// Call is a system call that is about to be made.
type Call struct {
	Kind Kind
	// Path is the file's path below the scenario's directory. To is the new path of a rename.
	Path, To string
}

// Kind is the kind of a call.
type Kind string

// The kinds of calls.
const (
	Write    Kind = "write"
	Truncate Kind = "truncate"
	Sync     Kind = "sync" // a file or a directory
	Close    Kind = "close"
	Create   Kind = "create" // opens a file, which is created if it does not exist
	Mkdir    Kind = "mkdir"
	Rename   Kind = "rename"
	Remove   Kind = "remove"
)

// Fill uses all free space in a directory except a number of bytes, and returns a function that frees it.
func Fill(t *testing.T, dir string, but int) (free func()) {
	t.Helper()
	hog := dir + "/hog"
	f, err := os.Create(hog)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	size := 0
	for block := 64 << 10; block > 0; {
		n, err := f.Write(make([]byte, block))
		if size += n; err != nil {
			block /= 2
		}
	}
	if err := f.Truncate(int64(max(0, size-but))); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(hog); err != nil {
			t.Fatal(err)
		}
	}
}
