package runner

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// outputLimits are the limits of an outputFile, in bytes.
type outputLimits struct {
	unread    int64 // output waiting to be read; beyond this, it is dropped except for the last kept bytes
	kept      int64 // see unread
	allocated int64 // memory that the file may take; beyond this, the run is ended
}

// freeStep is the amount by which an outputFile is freed at a time, in bytes.
const freeStep = 1 << 20

// outputFile is a source that never blocks the command: a file that the command appends to and the log follows. Some
// programs exit without waiting for a pipe to take their last line.
//
// The file is in memory, has no name and cannot be shortened by the command, so a full disk does not truncate a line,
// and the file disappears with the run's supervisor. A file has no back-pressure: data that was read is freed, and a
// flood that the log cannot keep up with loses its middle.
type outputFile struct {
	file   *os.File
	log    *logWriter
	limits outputLimits
	done   chan struct{} // closed by finish
	idle   chan struct{} // closed when the file is no longer being freed

	mu      sync.Mutex
	offset  int64 // of the next byte to read
	freed   int64 // the file is freed up to this offset
	end     int64 // offset at which reading ends, -1 before finish
	midLine bool  // the last byte that was read is not a newline
	torn    bool  // bytes after the last byte that was read were dropped
	partial bool  // the next bytes belong to a line whose beginning was dropped
	dropped int64 // dropped bytes that are not yet reported
}

// openFile opens a file as a command's standard output.
func (s *supervisor) openFile() (source, error) {
	file, err := newUnnamedFile()
	if err != nil {
		return nil, fmt.Errorf("create a file for the output: %w", err)
	}
	if _, err := unix.FcntlInt(file.Fd(), unix.F_SETFL, unix.O_APPEND); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("create a file for the output: %w", err)
	}
	return &outputFile{
		file: file, log: s.log, limits: outputLimits{unread: 64 << 20, kept: tailBytes, allocated: 256 << 20},
		done: make(chan struct{}), idle: make(chan struct{}), end: -1,
	}, nil
}

func (o *outputFile) writer() *os.File { return o.file }

// started begins to bound the size of the file.
func (o *outputFile) started() {
	go func() {
		defer close(o.idle)
		ticker := time.NewTicker(pollPause)
		defer ticker.Stop()
		for {
			select {
			case <-o.done:
				return
			case <-ticker.C:
				o.bound()
			}
		}
	}()
}

// finish ends reading at the current size. Later output of an escaped process is not read.
func (o *outputFile) finish() {
	close(o.done)
	<-o.idle
	o.bound()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.end = max(o.offset, o.size())
}

func (o *outputFile) close() { _ = o.file.Close() }

// size returns 0 if it cannot be read, which does not happen to an open file.
func (o *outputFile) size() int64 {
	info, err := o.file.Stat()
	if err != nil {
		return 0
	}
	return info.Size()
}

// Read waits for more output at the end of the file.
func (o *outputFile) Read(p []byte) (int, error) {
	for {
		n, dropped, err := o.next(p)
		if dropped > 0 {
			o.log.noteMissing(dropped, "%d bytes of the output were left out here: there was more than could be read in time.", dropped)
		}
		if n > 0 || err != nil {
			return n, err
		}
		timer := time.NewTimer(pollPause)
		select {
		case <-o.done:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// next returns the data that can be read now, and io.EOF at the end. Before the first byte after a gap, it returns the
// number of bytes that were dropped there.
func (o *outputFile) next(p []byte) (n int, dropped int64, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.torn {
		o.torn, o.partial = false, true
		if o.midLine {
			o.midLine = false
			return copy(p, "\n"), 0, nil
		}
	}
	for n == 0 {
		if o.end >= 0 {
			p = p[:min(int64(len(p)), o.end-o.offset)]
		}
		read, err := o.file.ReadAt(p, o.offset)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, 0, fmt.Errorf("read the output: %w", err)
		}
		o.offset += int64(read)
		if n = o.skipPartial(p[:read]); read == 0 {
			break
		}
	}
	if n > 0 {
		o.midLine = p[n-1] != '\n'
	} else if o.end >= 0 {
		err = io.EOF
	}
	if n > 0 || err != nil {
		dropped, o.dropped = o.dropped, 0
	}
	return n, dropped, err
}

// skipPartial removes the rest of a line whose beginning was dropped, and returns the number of bytes that remain in p.
// The redactor would not recognize a part of a secret.
func (o *outputFile) skipPartial(p []byte) int {
	if !o.partial {
		return len(p)
	}
	i := bytes.IndexByte(p, '\n')
	if i < 0 {
		o.dropped += int64(len(p))
		return 0
	}
	o.partial = false
	o.dropped += int64(i) + 1
	return copy(p, p[i+1:])
}

// bound drops output that is too far ahead of the log, and frees data that was read. It ends the run if that is not
// enough, for example if the command allocates space in the file.
func (o *outputFile) bound() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if size := o.size(); size-o.offset > o.limits.unread {
		o.dropped += size - o.limits.kept - o.offset
		o.offset, o.torn = size-o.limits.kept, true
	}
	page := int64(os.Getpagesize())
	if to := o.offset / page * page; to-o.freed >= freeStep && punchHole(o.file, o.freed, to-o.freed) == nil {
		o.freed = to
	}
	if allocated := o.allocated(); allocated > o.limits.allocated {
		o.log.fail(fmt.Errorf("the command's output takes %d MiB, and at most %d MiB are allowed", allocated>>20, o.limits.allocated>>20))
	}
}

// allocated returns the memory that the file takes, in bytes.
func (o *outputFile) allocated() int64 {
	info, err := o.file.Stat()
	if err != nil {
		return 0
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	return stat.Blocks * 512
}
