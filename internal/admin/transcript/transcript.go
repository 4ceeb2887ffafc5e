// Package transcript reads the transcripts of runs for pages: forward and backward from any offset, a page at a time,
// while they still grow. It turns their records into the items of a log.
//
// Start here: [ReadPart], which reads one page, and [From], which reads on.
package transcript

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/errand-bot/errand/internal/runlog"
)

const (
	maxRecord   = 8 << 20   // longest record shown, in bytes; the file has longer ones
	PageRecords = 200       // records of one page
	pageBytes   = 4 << 20   // bytes of one page
	backBlock   = 64 << 10  // block size when reading backward
	maxBack     = pageBytes // bytes searched for the start of the previous page
)

// A Record is one line of a transcript with its offset in the file. Offsets remain valid, because a file only grows and
// an incomplete line after a crash is never counted.
type Record struct {
	At, Next int64
	data     []byte // nil if it is too long
}

// Records reads the complete lines of a transcript.
type Records struct {
	reader *bufio.Reader
	at     int64
}

// From starts at an offset at which a line starts.
func From(f *os.File, at int64) *Records {
	const toTheEnd = 1 << 62
	return &Records{reader: bufio.NewReaderSize(io.NewSectionReader(f, at, toTheEnd-at), 64<<10), at: at}
}

// Next returns the next complete line, or io.EOF if there is none yet.
func (r *Records) Next() (Record, error) {
	rec := Record{At: r.at}
	long := false
	for {
		part, err := r.reader.ReadSlice('\n')
		r.at += int64(len(part))
		if long = long || len(rec.data)+len(part) > maxRecord; long {
			rec.data = nil
		} else {
			rec.data = append(rec.data, part...)
		}
		switch {
		case err == nil:
			rec.Next = r.at
			return rec, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return Record{}, err
		}
	}
}

// LineStart returns the first start of a line at or after any offset.
func LineStart(f *os.File, at int64) (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, fmt.Errorf("stat transcript: %w", err)
	}
	at = min(at, info.Size())
	if at <= 0 {
		return 0, nil
	}
	r := From(f, at-1)
	rec, err := r.Next()
	if errors.Is(err, io.EOF) { // within the last, incomplete line
		return Back(f, at, 1)
	}
	return rec.Next, err
}

// Back returns the offset n lines before another start of a line. It searches a limited number of bytes; with very long
// lines it returns the earliest start of a line found.
func Back(f *os.File, at int64, n int) (int64, error) {
	found, seen := at, 0
	for end := at; end > 0 && at-end < maxBack; {
		start := max(end-backBlock, 0)
		block := make([]byte, end-start)
		if _, err := f.ReadAt(block, start); err != nil && !errors.Is(err, io.EOF) {
			return 0, fmt.Errorf("read transcript: %w", err)
		}
		for i := len(block) - 1; i >= 0; i-- {
			if begins := start + int64(i) + 1; block[i] == '\n' && begins < at {
				found = begins
				if seen++; seen == n {
					return found, nil
				}
			}
		}
		end = start
	}
	if at <= maxBack {
		return 0, nil
	}
	return found, nil
}

// ReadHeader reads the run's header, nil if the file has none. A file without a complete line is io.EOF.
func ReadHeader(f *os.File) (*runlog.Header, error) {
	rec, err := From(f, 0).Next()
	if err != nil {
		return nil, fmt.Errorf("read transcript header: %w", err)
	}
	h := &runlog.Header{}
	if json.Unmarshal(rec.data, h) != nil || h.Version == 0 {
		return nil, nil
	}
	return h, nil
}

// A Part is one page of a transcript.
type Part struct {
	From, Next int64 // its start and end in the file
	Size       int64 // size of the file
	Items      []Item
	End        *runlog.End
}

// Before reports whether there are earlier records.
func (p *Part) Before() bool { return p.From > 0 }

// After reports whether there are later records.
func (p *Part) After() bool { return p.Next < p.Size }

// Percent returns the position of the page's end in the file.
func (p *Part) Percent() int {
	if p.Size == 0 {
		return 100
	}
	return int(100 * p.Next / p.Size)
}

// ReadPart reads the page that starts at an offset.
func ReadPart(f *os.File, from int64) (*Part, error) {
	from, err := LineStart(f, from)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("stat transcript: %w", err)
	}
	p := &Part{From: from, Next: from, Size: info.Size()}
	r := From(f, from)
	for range PageRecords {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			p.Size = p.Next // the rest is an incomplete line
			return p, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read transcript: %w", err)
		}
		items, end := rec.Items()
		p.Items, p.Next = append(p.Items, items...), rec.Next
		if end != nil {
			p.End = end
		}
		if p.Next-p.From > pageBytes {
			break
		}
	}
	return p, nil
}

// ReadTail reads the last page, of at most n records.
func ReadTail(f *os.File, n int) (*Part, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("stat transcript: %w", err)
	}
	end, err := LineStart(f, info.Size())
	if err != nil {
		return nil, err
	}
	from, err := Back(f, end, n)
	if err != nil {
		return nil, err
	}
	return ReadPart(f, from)
}

// entry decodes a record, or returns false if it has no entry, like the header.
func (r Record) entry() (runlog.Entry, bool) {
	var e runlog.Entry
	if r.At == 0 || len(bytes.TrimSpace(r.data)) == 0 || json.Unmarshal(r.data, &e) != nil {
		return e, false
	}
	return e, true
}
