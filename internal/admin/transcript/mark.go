package transcript

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

// A Mark is a client's position: an offset in the file and the number of the last line before it.
type Mark struct{ At, Seq int64 }

// String formats a mark for the ID of an event, as ParseMark reads it.
func (m Mark) String() string {
	return strconv.FormatInt(m.At, 10) + "-" + strconv.FormatInt(m.Seq, 10)
}

// ParseMark parses the output of String, or an offset alone. Anything else is the start.
func ParseMark(text string) Mark {
	place, line, _ := strings.Cut(text, "-")
	at, err := strconv.ParseInt(place, 10, 64)
	if err != nil || at < 0 {
		return Mark{}
	}
	seq, err := strconv.ParseInt(line, 10, 64)
	if err != nil || seq < 0 {
		seq = 0
	}
	return Mark{At: at, Seq: seq}
}

// Find returns the mark's offset in a file: its own offset if the line before it has the mark's number, otherwise the
// offset after that line.
func (m Mark) Find(f *os.File) (int64, error) {
	at, err := LineStart(f, m.At)
	if err != nil || m.Seq == 0 {
		return at, err
	}
	if stands, err := m.stands(f, at); stands || err != nil {
		return at, err
	}
	behind := int64(0)
	for r := From(f, 0); ; {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			return behind, nil
		}
		if err != nil {
			return 0, fmt.Errorf("read transcript: %w", err)
		}
		switch seq := rec.Seq(); {
		case seq == m.Seq+1:
			return rec.At, nil
		case seq > m.Seq:
			return behind, nil // start at the beginning if the mark's line is gone: the file states which lines are missing
		case seq > 0:
			behind = rec.Next
		}
	}
}

// stands reports whether the newest line before an offset is the mark's. Some records have no line number.
func (m Mark) stands(f *os.File, at int64) (bool, error) {
	for n := 1; n <= 4; n++ {
		before, err := Back(f, at, n)
		if err != nil {
			return false, err
		}
		rec, err := From(f, before).Next()
		if err != nil {
			return false, nil
		}
		if seq := rec.Seq(); seq > 0 {
			return seq == m.Seq, nil
		}
	}
	return false, nil
}

// Seq returns the record's line number, 0 if it has none.
func (r Record) Seq() int64 {
	if e, ok := r.entry(); ok && e.Line != nil {
		return e.Line.Seq
	}
	return 0
}
