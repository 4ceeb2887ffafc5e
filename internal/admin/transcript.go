package admin

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
	pageRecords = 200       // records of one page
	pageBytes   = 4 << 20   // bytes of one page
	backBlock   = 64 << 10  // block size when reading backward
	maxBack     = pageBytes // bytes searched for the start of the previous page
)

// record is one line of a transcript with its offset in the file. Offsets remain valid, because a file only grows and
// an incomplete line after a crash is never counted.
type record struct {
	at, next int64
	data     []byte // nil if it is too long
}

// records reads the complete lines of a transcript.
type records struct {
	reader *bufio.Reader
	at     int64
}

// recordsFrom starts at an offset at which a line starts.
func recordsFrom(f *os.File, at int64) *records {
	const toTheEnd = 1 << 62
	return &records{reader: bufio.NewReaderSize(io.NewSectionReader(f, at, toTheEnd-at), 64<<10), at: at}
}

// next returns the next complete line, or io.EOF if there is none yet.
func (r *records) next() (record, error) {
	rec := record{at: r.at}
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
			rec.next = r.at
			return rec, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return record{}, err
		}
	}
}

// lineStart returns the first start of a line at or after any offset.
func lineStart(f *os.File, at int64) (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, fmt.Errorf("stat transcript: %w", err)
	}
	at = min(at, info.Size())
	if at <= 0 {
		return 0, nil
	}
	r := recordsFrom(f, at-1)
	rec, err := r.next()
	if errors.Is(err, io.EOF) { // within the last, incomplete line
		return back(f, at, 1)
	}
	return rec.next, err
}

// back returns the offset n lines before another start of a line. It searches a limited number of bytes; with very long
// lines it returns the earliest start of a line found.
func back(f *os.File, at int64, n int) (int64, error) {
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

// header reads the run's header, nil if the file has none. A file without a complete line is io.EOF.
func header(f *os.File) (*runlog.Header, error) {
	rec, err := recordsFrom(f, 0).next()
	if err != nil {
		return nil, fmt.Errorf("read transcript header: %w", err)
	}
	h := &runlog.Header{}
	if json.Unmarshal(rec.data, h) != nil || h.Version == 0 {
		return nil, nil
	}
	return h, nil
}

// part is one page of a transcript.
type part struct {
	From, Next int64 // its start and end in the file
	Size       int64 // size of the file
	Items      []item
	End        *runlog.End
}

// Before reports whether there are earlier records.
func (p *part) Before() bool { return p.From > 0 }

// After reports whether there are later records.
func (p *part) After() bool { return p.Next < p.Size }

// Percent returns the position of the page's end in the file.
func (p *part) Percent() int {
	if p.Size == 0 {
		return 100
	}
	return int(100 * p.Next / p.Size)
}

// readPart reads the page that starts at an offset.
func readPart(f *os.File, from int64) (*part, error) {
	from, err := lineStart(f, from)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("stat transcript: %w", err)
	}
	p := &part{From: from, Next: from, Size: info.Size()}
	r := recordsFrom(f, from)
	for range pageRecords {
		rec, err := r.next()
		if errors.Is(err, io.EOF) {
			p.Size = p.Next // the rest is an incomplete line
			return p, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read transcript: %w", err)
		}
		items, end := rec.items()
		p.Items, p.Next = append(p.Items, items...), rec.next
		if end != nil {
			p.End = end
		}
		if p.Next-p.From > pageBytes {
			break
		}
	}
	return p, nil
}

// readTail reads the last page, of at most n records.
func readTail(f *os.File, n int) (*part, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("stat transcript: %w", err)
	}
	end, err := lineStart(f, info.Size())
	if err != nil {
		return nil, err
	}
	from, err := back(f, end, n)
	if err != nil {
		return nil, err
	}
	return readPart(f, from)
}

// entry decodes a record, or returns false if it has no entry, like the header.
func (r record) entry() (runlog.Entry, bool) {
	var e runlog.Entry
	if r.at == 0 || len(bytes.TrimSpace(r.data)) == 0 || json.Unmarshal(r.data, &e) != nil {
		return e, false
	}
	return e, true
}
