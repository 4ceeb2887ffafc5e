package admin

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// A transcript that became too long is replaced by a shorter file with different offsets. Clients therefore also send
// the number of their last line.

// mark is a client's position: an offset in the file and the number of the last line before it.
type mark struct{ at, seq int64 }

func (m mark) String() string {
	return strconv.FormatInt(m.at, 10) + "-" + strconv.FormatInt(m.seq, 10)
}

// readMark parses the output of String, or an offset alone. Anything else is the start.
func readMark(text string) mark {
	place, line, _ := strings.Cut(text, "-")
	at, err := strconv.ParseInt(place, 10, 64)
	if err != nil || at < 0 {
		return mark{}
	}
	seq, err := strconv.ParseInt(line, 10, 64)
	if err != nil || seq < 0 {
		seq = 0
	}
	return mark{at: at, seq: seq}
}

// find returns the mark's offset in a file: its own offset if the line before it has the mark's number, otherwise the
// offset after that line.
func (m mark) find(f *os.File) (int64, error) {
	at, err := lineStart(f, m.at)
	if err != nil || m.seq == 0 {
		return at, err
	}
	if stands, err := m.stands(f, at); stands || err != nil {
		return at, err
	}
	behind := int64(0)
	for r := recordsFrom(f, 0); ; {
		rec, err := r.next()
		if errors.Is(err, io.EOF) {
			return behind, nil
		}
		if err != nil {
			return 0, fmt.Errorf("read transcript: %w", err)
		}
		switch seq := rec.seq(); {
		case seq == m.seq+1:
			return rec.at, nil
		case seq > m.seq:
			return behind, nil // start at the beginning if the mark's line is gone: the file states which lines are missing
		case seq > 0:
			behind = rec.next
		}
	}
}

// stands reports whether the newest line before an offset is the mark's. Some records have no line number.
func (m mark) stands(f *os.File, at int64) (bool, error) {
	for n := 1; n <= 4; n++ {
		before, err := back(f, at, n)
		if err != nil {
			return false, err
		}
		rec, err := recordsFrom(f, before).next()
		if err != nil {
			return false, nil
		}
		if seq := rec.seq(); seq > 0 {
			return seq == m.seq, nil
		}
	}
	return false, nil
}

// seq returns the record's line number, 0 if it has none.
func (r record) seq() int64 {
	if e, ok := r.entry(); ok && e.Line != nil {
		return e.Line.Seq
	}
	return 0
}

// renew switches to the file that replaced the one read to its end, and reports whether there is one.
func (s *stream) renew(f *os.File) (bool, error) {
	if s.own != nil {
		f = s.own
	}
	if f == nil {
		return false, nil
	}
	now, err := s.begun()
	if now == nil || err != nil {
		return false, err
	}
	if same(f, now) {
		return false, now.Close()
	}
	if s.own != nil {
		_ = s.own.Close()
	}
	s.own = now
	s.at, err = mark{at: s.at, seq: s.seq}.find(now)
	return err == nil, err
}

// same reports whether both are the same file. If in doubt it returns true.
func same(a, b *os.File) bool {
	x, err := a.Stat()
	if err != nil {
		return true
	}
	y, err := b.Stat()
	return err != nil || os.SameFile(x, y)
}
