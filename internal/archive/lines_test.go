package archive_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/runlog"
)

// TestAKeyInSeveralLines: a private key that a program wrote line by line is redacted, even if another stream wrote
// between its lines.
func TestAKeyInSeveralLines(t *testing.T) {
	t.Parallel()
	dir, path := open(t, nil)
	dir = dir.WithLines(func() func(string) string { // as trust.Lines does
		within := false
		return func(line string) string {
			hide := within || strings.Contains(line, "-----BEGIN ")
			within = hide && !strings.Contains(line, "-----END ")
			if hide {
				return "[redacted]"
			}
			return line
		}
	})
	if err := dir.BeginTranscript("7-1-1", runlog.Header{Run: "7-1-1"}); err != nil {
		t.Fatal(err)
	}
	tr, err := dir.Transcript("7-1-1")
	if err != nil {
		t.Fatal(err)
	}
	const line = "MIIEpAIBAAKCAQEAx1y2z3"
	var seq int64
	add := func(stream runlog.Stream, text string) {
		seq++
		if err := tr.Add(runlog.Line{Seq: seq, Stream: stream, Text: text}, nil); err != nil {
			t.Fatal(err)
		}
	}
	add(runlog.StreamStderr, "-----BEGIN PRIVATE "+"KEY-----")
	for range 5 {
		add(runlog.StreamStderr, line)
		add(runlog.StreamStdout, `{"said":"meanwhile"}`)
	}
	add(runlog.StreamStderr, "-----END PRIVATE "+"KEY-----")
	add(runlog.StreamStderr, "afterwards")
	if err := tr.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(path, "transcripts", "7-1-1.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(data, []byte(line)) || strings.Count(string(data), "meanwhile") != 5 || !bytes.Contains(data, []byte("afterwards")) {
		t.Errorf("transcript:\n%s", data)
	}
}
