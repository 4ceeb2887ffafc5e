package runlog_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/runlog"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func line(seq int64, text string) *runlog.Line {
	return &runlog.Line{Seq: seq, Time: noon, Stream: runlog.StreamStdout, Text: text}
}

func TestReader(t *testing.T) {
	t.Parallel()
	records := []runlog.Record{
		{Line: line(1, "one")}, {Line: line(2, "two")}, {Alive: true}, {Line: line(2, "two again")},
		{Line: line(3, "three\nlines\x00")}, {Exit: &runlog.Exit{Cause: runlog.CauseExited, Code: 2, LastSeq: 3}},
	}
	var b bytes.Buffer
	for _, r := range records {
		if err := json.NewEncoder(&b).Encode(r); err != nil {
			t.Fatal(err)
		}
	}
	b.WriteString("{\"seq\":4}\n")
	reader := runlog.NewReader(&b, 1)
	var got []runlog.Record
	for {
		record, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, record)
	}
	want := []runlog.Record{records[1], records[2], records[4], records[5]}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	if reader.Last() != 3 {
		t.Errorf("got last entry %d", reader.Last())
	}
}

func TestReaderErrors(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		stream string
		want   error
	}{
		"nothing":             {"", io.ErrUnexpectedEOF},
		"cut between records": {"{\"alive\":true}\n", io.ErrUnexpectedEOF},
		"cut within a record": {"{\"alive\":true}\n{\"seq\":1,\"te", io.ErrUnexpectedEOF},
		"record too long":     {"{\"alive\":true}\n" + strings.Repeat("x", runlog.MaxRecord+1), runlog.ErrTooLong},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reader := runlog.NewReader(strings.NewReader(test.stream), 0)
			var err error
			for err == nil {
				_, err = reader.Next()
			}
			if !errors.Is(err, test.want) {
				t.Errorf("error %v, want %v", err, test.want)
			}
		})
	}
}

func TestReaderGoesOnAfterNonsense(t *testing.T) {
	t.Parallel()
	reader := runlog.NewReader(strings.NewReader("nonsense\n{}\n\n{\"seq\":1,\"stream\":\"x\",\"text\":\"t\",\"cut\":-4}\n"), 0)
	for range 2 {
		if record, err := reader.Next(); err == nil {
			t.Fatalf("got %+v", record)
		}
	}
	record, err := reader.Next()
	want := runlog.Record{Line: &runlog.Line{Seq: 1, Stream: runlog.StreamRunner, Text: "t"}}
	if diff := cmp.Diff(want, record); err != nil || diff != "" {
		t.Errorf("%v, record (-want +got):\n%s", err, diff)
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text  string
		limit int
		want  string
	}{
		"short":            {"abc", 3, "abc"},
		"long":             {"abcde", 3, "abc… (2 more)"},
		"characters":       {"äöü", 3, "äöü"},
		"never in between": {"äöüß", 2, "äö… (2 more)"},
		"nothing":          {"abc", 0, "… (3 more)"},
		"empty":            {"", 0, ""},
		"negative":         {"abc", -1, "… (3 more)"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := runlog.Cut(test.text, test.limit); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestTranscript(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	header := runlog.Header{Run: "r", Task: "1/2", Started: noon, System: "be good", User: "do it", Withheld: []string{"a comment"}}
	entries := []runlog.Entry{
		{Line: line(1, "raw"), Events: []runlog.Event{{Seq: 1, Time: noon, Kind: runlog.KindText, Text: "said"}}},
		{Line: line(2, "noise")},
		{End: &runlog.End{Run: "r", Cause: runlog.CauseStopped, Class: runlog.ClassRetryable, Ended: noon}},
	}
	transcript, err := runlog.NewTranscript(&b, header)
	if err != nil {
		t.Fatal(err)
	}
	for i, entry := range entries {
		if i == 1 {
			b.WriteString(`{"line":{"seq":9,`) // a crash
			if transcript, err = runlog.ContinueTranscript(&b); err != nil {
				t.Fatal(err)
			}
		}
		if err := transcript.Add(entry); err != nil {
			t.Fatal(err)
		}
	}
	b.WriteString(`{"line":{"seq":3,`) // a crash
	var got []runlog.Entry
	read, err := runlog.ReadTranscript(&b, func(e runlog.Entry) error {
		got = append(got, e)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	header.Version = 1
	if diff := cmp.Diff(header, read); diff != "" {
		t.Errorf("header (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(entries, got); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}

func TestReadTranscriptErrors(t *testing.T) {
	t.Parallel()
	never := func(runlog.Entry) error { return nil }
	for _, text := range []string{"", "{", `{"version":9}`, "[]\n"} {
		if _, err := runlog.ReadTranscript(strings.NewReader(text), never); err == nil {
			t.Errorf("got %q, want an error", text)
		}
	}
	enough := errors.New("enough")
	_, err := runlog.ReadTranscript(strings.NewReader("{\"version\":1}\n{}"), func(runlog.Entry) error { return enough })
	if !errors.Is(err, enough) {
		t.Errorf("got error %v", err)
	}
}
