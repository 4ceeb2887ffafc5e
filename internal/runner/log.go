package runner

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"sync"
	"time"

	"github.com/errand-bot/errand/internal/runlog"
)

// Limits on the end of an overlong log that is kept. An agent's result is its last line, or its last hundreds of lines
// if the program prints an answer in chunks.
const (
	tailLines = 1024
	tailBytes = 8 << 20
)

// logWriter appends numbered lines to a run's log. Its methods may be called concurrently. It stops writing at the
// first error and keeps that error.
type logWriter struct {
	now    func() time.Time
	maxLog int64
	failed chan struct{} // closed at the first write error

	mu      sync.Mutex
	file    *os.File
	seq     int64
	written int64     // size of the output in the file, in bytes
	last    time.Time // time of the last output of any kind
	tail    []runlog.Line
	tailLen int
	dropped int64 // lines beyond the limit that were dropped
	missing int64 // bytes of the dropped lines of standard output
	err     error
}

func openLog(path string, maxLog int64, now func() time.Time) (*logWriter, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	return &logWriter{now: now, maxLog: maxLog, failed: make(chan struct{}), file: f, last: now()}, nil
}

// add appends one line of a command's output. cut is the number of bytes missing at its end.
func (w *logWriter) add(stream runlog.Stream, text string, cut int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	line := runlog.Line{Time: w.now(), Stream: stream, Text: text, Cut: cut}
	w.last = line.Time
	if len(w.tail) > 0 || w.written+int64(len(text)) > w.maxLog {
		w.keepInTail(line)
		return
	}
	w.written += int64(w.write(line))
}

// note appends a remark of the runner. It does not count as output or towards the log's limit.
func (w *logWriter) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.write(runlog.Line{Time: w.now(), Stream: runlog.StreamRunner, Text: fmt.Sprintf(format, args...)})
}

// noteMissing is note for a place where bytes of standard output are missing.
func (w *logWriter) noteMissing(bytes int64, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writeMissing(bytes, format, args...)
}

func (w *logWriter) writeMissing(bytes int64, format string, args ...any) {
	cut := int(min(bytes, math.MaxInt32))
	w.write(runlog.Line{Time: w.now(), Stream: runlog.StreamRunner, Text: fmt.Sprintf(format, args...), Cut: cut})
}

// keepInTail keeps a line beyond the limit, and drops the oldest such lines.
func (w *logWriter) keepInTail(line runlog.Line) {
	if w.tail == nil {
		w.write(runlog.Line{Time: line.Time, Stream: runlog.StreamRunner, Text: fmt.Sprintf(
			"The log has reached its limit of %d MiB; from here on only the last lines are kept.", w.maxLog>>20)})
	}
	w.tail = append(w.tail, line)
	w.tailLen += len(line.Text)
	for len(w.tail) > tailLines || (w.tailLen > tailBytes && len(w.tail) > 1) {
		w.tailLen -= len(w.tail[0].Text)
		if w.tail[0].Stream == runlog.StreamStdout {
			w.missing += int64(len(w.tail[0].Text)) + 1
		}
		w.tail[0] = runlog.Line{}
		w.tail = w.tail[1:]
		w.dropped++
	}
}

// write returns the number of bytes that the line takes in the log.
func (w *logWriter) write(line runlog.Line) int {
	if w.err != nil {
		return 0
	}
	line.Seq = w.seq + 1
	data, err := json.Marshal(line)
	if err == nil {
		_, err = w.file.Write(append(data, '\n'))
	}
	if err != nil {
		w.err = fmt.Errorf("write log: %w", err)
		close(w.failed)
		return 0
	}
	w.seq++
	return len(data) + 1
}

// fail ends the run as if the log could not be written.
func (w *logWriter) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
		close(w.failed)
	}
}

// lastOutput returns the time of the command's last output.
func (w *logWriter) lastOutput() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last
}

// alive counts an incomplete line as output.
func (w *logWriter) alive() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = w.now()
}

// finish writes the tail, makes the log durable and returns its last number.
func (w *logWriter) finish() (int64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dropped > 0 {
		w.writeMissing(w.missing, "%d lines were left out here.", w.dropped)
	}
	for _, line := range w.tail {
		w.write(line)
	}
	w.tail = nil
	return w.seq, errors.Join(w.err, w.file.Sync(), w.file.Close())
}

// copyLines reads a stream to its end and appends its lines, each truncated to maxLine bytes.
func (w *logWriter) copyLines(r io.Reader, stream runlog.Stream, maxLine int) {
	reader := bufio.NewReaderSize(r, 64<<10)
	var line []byte
	cut, pending := 0, false
	for {
		part, err := reader.ReadSlice('\n')
		if len(part) > 0 {
			pending = true
			body := part
			if part[len(part)-1] == '\n' {
				body = part[:len(part)-1]
			}
			keep := min(len(body), maxLine-len(line))
			line = append(line, body[:keep]...)
			cut += len(body) - keep
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			w.alive()
			continue
		}
		if pending {
			w.add(stream, string(line), cut)
			line, cut, pending = line[:0], 0, false
			if cap(line) > 1<<20 {
				line = nil
			}
		}
		if err != nil {
			return
		}
	}
}

// tailTexts returns the lines that are not written to the log before finish.
func (w *logWriter) tailTexts() (texts []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, line := range w.tail {
		texts = append(texts, line.Text)
	}
	return texts
}

// position returns the number of the last line so far.
func (w *logWriter) position() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seq
}
