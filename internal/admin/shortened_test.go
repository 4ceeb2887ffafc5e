package admin_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/runlog"
)

// shorten replaces the transcript by one without its first n lines, as the archive does.
func (tr *transcript) shorten(n int) {
	tr.t.Helper()
	path := tr.file.Name()
	data, err := os.ReadFile(path)
	if err != nil {
		tr.t.Fatal(err)
	}
	lines := bytes.SplitAfter(data, []byte("\n"))
	var out bytes.Buffer
	out.Write(lines[0])
	if err := runlogAdd(&out, runlog.Entry{Dropped: &runlog.Dropped{Records: int64(n), Last: int64(n)}, Events: []runlog.Event{{Kind: runlog.KindNotice, Text: "some are gone"}}}); err != nil {
		tr.t.Fatal(err)
	}
	for _, line := range lines[n+1:] {
		out.Write(line)
	}
	if err := os.WriteFile(path+".new", out.Bytes(), 0o600); err != nil {
		tr.t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		tr.t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		tr.t.Fatal(err)
	}
	tr.t.Cleanup(func() { _ = f.Close() })
	tr.file = f
	if tr.out, err = runlog.ContinueTranscript(f); err != nil {
		tr.t.Fatal(err)
	}
}

func runlogAdd(b *bytes.Buffer, e runlog.Entry) error {
	t, err := runlog.ContinueTranscript(b)
	if err != nil {
		return err
	}
	return t.Add(e)
}

// TestFollowAcrossTruncationOfTheBeginning: live logs, including reconnecting ones, continue in the shortened file
// without missing or repeated lines.
func TestFollowAcrossTruncationOfTheBeginning(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	run := w.launch(1)
	tr := w.write(run.ID)
	tr.say(said("one " + strings.Repeat("x", 500)))
	for _, text := range []string{"two", "three", "four"} {
		tr.say(said(text))
	}
	f := w.follow(eventsPath, nil)
	f.next()
	f.want("two", "three", "four")
	cut := w.follow(eventsPath, nil)
	cut.next()
	cut.want("two")
	_ = cut.resp.Body.Close()
	tr.shorten(2)
	tr.say(said("five"))
	f.want("five")
	back := w.follow(eventsPath, map[string]string{"Last-Event-ID": cut.last})
	back.want("three", "four", "five")
	tr.exit()
	back.want("success, exited with code 0, after 1m0s", "END")
	f.want("success, exited with code 0, after 1m0s", "END")
}
