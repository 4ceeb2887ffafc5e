// Package disktest breaks disks under tests and cuts their power, without root and without other programs.
//
// Run plays a scenario in a process of its own, the same test binary started again. The kernel asks us about each call of that
// process which writes, syncs, names or removes a file (seccomp's notifications), before it is made. So every such call can be made
// to fail, and we know at any moment what a power cut would leave: of a file what it held when it was last synced, of a folder the
// names that it had when it was last synced. Small gives a scenario a real small file system instead, for disks that are full.
//
// Start reading at Disk. Where the kernel does not allow it the test is skipped, and says so.
package disktest

import (
	"os"
	"syscall"
	"testing"
)

// Disk is a test on a disk that fails.
type Disk struct {
	// Play is the scenario. It runs in the other process, with a folder that is empty at first, and tells what it relies on by Say.
	// What it leaves running ends with it.
	Play func(t *testing.T, dir string)
	// Fail says which calls fail, and how; 0 lets one pass. It is asked before each call, one after the other. nil lets all pass.
	Fail func(c Call, said []string) syscall.Errno
	// Check looks at a folder as it is after a power cut, and at what had been said until then. It is called for each moment at
	// which the outcome may be another one; nil is no check.
	Check func(t *testing.T, dir string, said []string)
	// Ignore names folders, below the scenario's, that do not matter.
	Ignore []string
	// Trace makes Run return all calls; otherwise it returns none.
	Trace bool
}

// Call is a call that is about to be made.
type Call struct {
	Kind Kind
	// Path is the file's path below the scenario's folder. To is the other one of a rename.
	Path, To string
}

// Kind is what a call does.
type Kind string

// The kinds of calls.
const (
	Write    Kind = "write"
	Truncate Kind = "truncate"
	Sync     Kind = "sync" // a file or a folder
	Close    Kind = "close"
	Create   Kind = "create" // opens a file, which is made if it is not there
	Mkdir    Kind = "mkdir"
	Rename   Kind = "rename"
	Remove   Kind = "remove"
)

// Fill takes all room that is left in a folder, but so many bytes, and returns what gives it back.
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
