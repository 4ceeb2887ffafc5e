package runlog

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// MaxRecord is the size of the largest record on the wire, in bytes, that a Reader accepts. A runner's line limit is
// far below, even if every byte of a line is escaped.
const MaxRecord = 64 << 20

// ErrTooLong means that a record is longer than MaxRecord. The stream cannot be read further.
var ErrTooLong = errors.New("record too long")

// Record is one line of JSON for a follower: a line of the log, a heartbeat, or the run's exit, which is the last
// record.
type Record struct {
	Line  *Line
	Alive bool
	Exit  *Exit
}

// MarshalJSON encodes a log line as itself, and the others as {"alive":true} and {"exit":{…}}.
func (r Record) MarshalJSON() ([]byte, error) {
	switch {
	case r.Line != nil:
		return json.Marshal(r.Line)
	case r.Exit != nil:
		return json.Marshal(wireRecord{Exit: r.Exit})
	default:
		return json.Marshal(wireRecord{Alive: true})
	}
}

type wireRecord struct {
	Alive bool  `json:"alive,omitempty"`
	Exit  *Exit `json:"exit,omitempty"`
}

// UnmarshalJSON decodes the output of MarshalJSON.
func (r *Record) UnmarshalJSON(data []byte) error {
	var all struct {
		wireRecord
		Line
	}
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	switch {
	case all.Exit != nil:
		*r = Record{Exit: all.Exit}
	case all.Alive:
		*r = Record{Alive: true}
	case all.Line.Seq > 0:
		*r = Record{Line: &all.Line}
	default:
		return errors.New("neither a line, a heartbeat nor an exit")
	}
	return nil
}

// Reader reads the records of a followed run, which come from a VM. It enforces increasing numbers and valid UTF-8, and
// treats unknown streams as the runner's.
type Reader struct {
	reader *bufio.Reader
	last   int64
	ended  bool
}

// NewReader returns a reader that skips lines up to number from.
func NewReader(r io.Reader, from int64) *Reader {
	return &Reader{reader: bufio.NewReaderSize(r, 64<<10), last: from}
}

// Last returns the number of the last line that was returned, from which to resume after an interruption.
func (r *Reader) Last() int64 { return r.last }

// Next returns the next record, or io.EOF after the exit. It returns io.ErrUnexpectedEOF if the stream ends before, for
// example with the connection. After an error because of invalid JSON, the next record can still be read.
func (r *Reader) Next() (Record, error) {
	for {
		if r.ended {
			return Record{}, io.EOF
		}
		data, err := r.readRecord()
		if err != nil {
			return Record{}, err
		}
		if len(bytes.TrimSpace(data)) == 0 {
			continue
		}
		var record Record
		if err := json.Unmarshal(data, &record); err != nil {
			return Record{}, fmt.Errorf("decode record: %w", err)
		}
		if record.Line != nil {
			if record.Line.Seq <= r.last {
				continue
			}
			r.last = record.Line.Seq
			record.Line.clean()
		}
		r.ended = record.Exit != nil
		return record, nil
	}
}

// readRecord returns the bytes up to the next newline.
func (r *Reader) readRecord() ([]byte, error) {
	var data []byte
	for {
		part, err := r.reader.ReadSlice('\n')
		if len(data)+len(part) > MaxRecord {
			r.ended = true
			return nil, ErrTooLong
		}
		data = append(data, part...)
		switch {
		case err == nil:
			return data, nil
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF):
			return nil, io.ErrUnexpectedEOF
		default:
			return nil, fmt.Errorf("read record: %w", err)
		}
	}
}

// clean makes a line valid for storage and display.
func (l *Line) clean() {
	switch l.Stream {
	case StreamStdout, StreamStderr, StreamRunner:
	default:
		l.Stream = StreamRunner
	}
	l.Cut = max(l.Cut, 0)
	if !utf8.ValidString(l.Text) {
		l.Text = strings.ToValidUTF8(l.Text, "\uFFFD")
	}
}
