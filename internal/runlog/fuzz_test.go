package runlog_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/runlog"
)

// readAll reads a stream to its end: the lines, how many records were no record, and the last error.
func readAll(t *testing.T, data []byte, from int64) (lines []runlog.Line, bad int, end error) {
	t.Helper()
	reader := runlog.NewReader(bytes.NewReader(data), from)
	for range len(data) + 2 {
		record, err := reader.Next()
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return lines, bad, err
		case err != nil:
			bad++
		case record.Line != nil:
			if record.Line.Seq != reader.Last() {
				t.Fatalf("got last entry %d after %+v", reader.Last(), record.Line)
			}
			lines = append(lines, *record.Line)
		}
	}
	t.Fatal("the reader does not end")
	return nil, 0, nil
}

// FuzzReader: numbers increase, text is valid, and a reader that is interrupted at any byte and resumes from its last
// number reads the same as an uninterrupted one.
func FuzzReader(f *testing.F) {
	f.Add([]byte("{\"seq\":1,\"stream\":\"stdout\",\"text\":\"x\"}\n{\"alive\":true}\n{\"exit\":{\"cause\":\"exited\"}}\n"), uint16(30))
	f.Add([]byte("{\"seq\":2}\n{\"seq\":1}\nnull\n"), uint16(0))
	f.Add([]byte("{\"seq\":1,\"te\nnonsense\n{\"seq\":4,\"text\":\"\xff\",\"cut\":-1}\n\n{\"seq\":5}"), uint16(12))
	f.Fuzz(func(t *testing.T, data []byte, at uint16) {
		all, _, end := readAll(t, data, 0)
		last := int64(0)
		for _, l := range all {
			if l.Seq <= last || !utf8.ValidString(l.Text) || l.Cut < 0 || l.Stream == "" {
				t.Fatalf("after %d: got %+v", last, l)
			}
			last = l.Seq
		}
		before, _, cut := readAll(t, data[:min(int(at), len(data))], 0)
		if cut == io.EOF { // the exit was read
			if diff := cmp.Diff(all, before); diff != "" {
				t.Errorf("got entries after the exit (-all +first):\n%s", diff)
			}
			return
		}
		from := int64(0)
		if len(before) > 0 {
			from = before[len(before)-1].Seq
		}
		after, _, again := readAll(t, data, from)
		if diff := cmp.Diff(all, append(before, after...)); diff != "" || again != end {
			t.Errorf("cut at %d, it ends with %v, not %v, and reads (-all +both):\n%s", at, again, end, diff)
		}
	})
}

// FuzzReaderLosesNothing: every valid line is read, whatever is between them.
func FuzzReaderLosesNothing(f *testing.F) {
	f.Add([]byte("nonsense"), []byte(`{"seq":1,"te`), "text\n\x00")
	f.Add([]byte("null"), []byte(`{"seq":"9"}`), "\u2028")
	f.Add([]byte(`{"exit":5}`), []byte("[[[["), "")
	f.Fuzz(func(t *testing.T, junk, more []byte, text string) {
		var stream bytes.Buffer
		var want []runlog.Line
		for i, j := range [][]byte{junk, more, bytes.Repeat(junk, 3), nil, more[:len(more)/2]} {
			j = bytes.ReplaceAll(j, []byte("\n"), nil)
			if json.Unmarshal(j, new(runlog.Record)) == nil {
				return // it is a record, which means something
			}
			l := *line(int64(i+1), fmt.Sprintf("%d %s", i, text))
			l.Text = string(bytes.ToValidUTF8([]byte(l.Text), []byte("\uFFFD")))
			want = append(want, l)
			stream.Write(append(j, '\n'))
			if err := json.NewEncoder(&stream).Encode(runlog.Record{Line: &l}); err != nil {
				t.Fatal(err)
			}
		}
		got, _, end := readAll(t, stream.Bytes(), 0)
		if diff := cmp.Diff(want, got); diff != "" || end != io.ErrUnexpectedEOF {
			t.Errorf("it ends with %v; lines (-want +got):\n%s", end, diff)
		}
	})
}

// FuzzTranscript: written entries are read again, even if crashes truncated the last line any number of times.
func FuzzTranscript(f *testing.F) {
	f.Add("do it", "raw \x1b[1m line", []byte(`{"line":{"seq":9,`))
	f.Add("", "\u2029", []byte("\x00"))
	f.Fuzz(func(t *testing.T, user, text string, torn []byte) {
		torn = bytes.ReplaceAll(torn, []byte("\n"), nil)
		if json.Unmarshal(torn, new(runlog.Entry)) == nil {
			return
		}
		var file bytes.Buffer
		transcript, err := runlog.NewTranscript(&file, runlog.Header{Run: "r", Started: noon, User: user})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 4 {
			if i%2 == 1 {
				file.Write(torn)
				if transcript, err = runlog.ContinueTranscript(&file); err != nil {
					t.Fatal(err)
				}
			}
			if err := transcript.Add(runlog.Entry{Line: line(int64(i+1), text)}); err != nil {
				t.Fatal(err)
			}
		}
		file.Write(torn)
		n := int64(0)
		header, err := runlog.ReadTranscript(&file, func(e runlog.Entry) error {
			if n++; e.Line == nil || e.Line.Seq != n {
				t.Errorf("entry %d: got %+v", n, e)
			}
			return nil
		})
		if err != nil || n != 4 || header.Run != "r" {
			t.Errorf("got %d of 4 entries of run %q, error %v", n, header.Run, err)
		}
	})
}
