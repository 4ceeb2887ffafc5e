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
	maxRecord   = 8 << 20   // bytes of a record that is still shown; longer ones are in the file
	pageRecords = 200       // records of one page
	pageBytes   = 4 << 20   // and bytes, so that a page ends
	backBlock   = 64 << 10  // bytes read at once when going back
	maxBack     = pageBytes // bytes looked through for the page before
)

// record is one line of a transcript and where it lies in the file. Places are how pages and live
// logs say how far they are: a file only grows, and what a crash tore off is never a whole line.
type record struct {
	at, next int64
	data     []byte // nil if it is too long
}

// records reads the whole lines of a transcript.
type records struct {
	reader *bufio.Reader
	at     int64
}

// recordsFrom begins at a place in the file that begins a line.
func recordsFrom(f *os.File, at int64) *records {
	const toTheEnd = 1 << 62
	return &records{reader: bufio.NewReaderSize(io.NewSectionReader(f, at, toTheEnd-at), 64<<10), at: at}
}

// next returns the next whole line, io.EOF if there is none yet.
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

// lineStart returns the first beginning of a line at or after a place, which may be any number.
func lineStart(f *os.File, at int64) (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, fmt.Errorf("look at transcript: %w", err)
	}
	at = min(at, info.Size())
	if at <= 0 {
		return 0, nil
	}
	r := recordsFrom(f, at-1)
	rec, err := r.next()
	if errors.Is(err, io.EOF) { // within the last, torn line
		return back(f, at, 1)
	}
	return rec.next, err
}

// back returns the place n lines before another one, which begins a line. It looks through so many
// bytes only; where lines are too long for that it stops short at the earliest beginning that it saw.
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

// header reads what the agent was given; nil if the file does not say. A file without a whole line is
// io.EOF.
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

// part is what one page shows of a transcript.
type part struct {
	From, Next int64 // where it begins and ends in the file
	Size       int64 // of the file
	Items      []item
	End        *runlog.End
}

// Before reports whether there is something before the part, After whether after it.
func (p *part) Before() bool { return p.From > 0 }

// After reports whether the file goes on behind the part.
func (p *part) After() bool { return p.Next < p.Size }

// Percent says how far through the file the part reaches.
func (p *part) Percent() int {
	if p.Size == 0 {
		return 100
	}
	return int(100 * p.Next / p.Size)
}

// readPart reads a page that begins at a place.
func readPart(f *os.File, from int64) (*part, error) {
	from, err := lineStart(f, from)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("look at transcript: %w", err)
	}
	p := &part{From: from, Next: from, Size: info.Size()}
	r := recordsFrom(f, from)
	for range pageRecords {
		rec, err := r.next()
		if errors.Is(err, io.EOF) {
			p.Size = p.Next // what is behind is not whole yet
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
		return nil, fmt.Errorf("look at transcript: %w", err)
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

// entry decodes a record; false if it holds nothing of use, as the header does not.
func (r record) entry() (runlog.Entry, bool) {
	var e runlog.Entry
	if r.at == 0 || len(bytes.TrimSpace(r.data)) == 0 || json.Unmarshal(r.data, &e) != nil {
		return e, false
	}
	return e, true
}
