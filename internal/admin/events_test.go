package admin_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/admin"
	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/state/event"
)

func stateClosed() event.Event { return event.Event{By: writer, Payload: event.IssueClosed{}} }

// follower reads a live log.
type follower struct {
	t    *testing.T
	resp *http.Response
	scan *bufio.Scanner
	last string // ID of the last event
}

const eventsPath = "/tasks/acme/shop/1/runs/1/events"

// follow opens a live log. headers may contain the place to continue from.
func (w *world) follow(path string, headers map[string]string) *follower {
	w.t.Helper()
	h := map[string]string{"Authorization": "Bearer " + token, "Accept": "text/event-stream"}
	for k, v := range headers {
		h[k] = v
	}
	resp := do(w.t, http.MethodGet, w.url+path, "", h)
	w.t.Cleanup(func() { _ = resp.Body.Close() })
	return &follower{t: w.t, resp: resp, scan: bufio.NewScanner(resp.Body)}
}

// next returns the texts of the next event, or the single text "END" at the end of the log.
func (f *follower) next() []string {
	f.t.Helper()
	var data, kind string
	for f.scan.Scan() {
		name, value, _ := strings.Cut(f.scan.Text(), ": ")
		switch name {
		case "data":
			data += value
		case "event":
			kind = value
		case "id":
			f.last = value
		case "":
			if kind == "end" {
				return []string{"END"}
			}
			if data != "" {
				return texts(f.t, data)
			}
		}
	}
	f.t.Fatalf("the stream ended: %v", f.scan.Err())
	return nil
}

func texts(t *testing.T, data string) (list []string) {
	t.Helper()
	var items []struct {
		Kind, Text string
		More       int
	}
	if err := json.Unmarshal([]byte(data), &items); err != nil {
		t.Fatal(err)
	}
	for _, it := range items {
		list = append(list, it.Text)
	}
	return list
}

func (f *follower) want(texts ...string) {
	f.t.Helper()
	for _, text := range texts {
		if diff := cmp.Diff([]string{text}, f.next()); diff != "" {
			f.t.Fatalf("event (-want +got):\n%s", diff)
		}
	}
}

func said(text string) runlog.Event { return runlog.Event{Kind: runlog.KindText, Text: text} }

func TestFollow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	run := w.launch(1)
	f := w.follow(eventsPath, nil) // before the file exists
	if got := f.resp.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("content type %s", got)
	}
	tr := w.write(run.ID)
	tr.say(said("one"))
	f.want("one")
	if _, err := tr.file.WriteString(`{"line":{"seq":2,"text":"half`); err != nil { // incomplete
		t.Fatal(err)
	}
	if _, err := fmt.Fprintln(tr.file, `"},"events":[{"kind":"text","text":"two\nlines"}]}`); err != nil {
		t.Fatal(err)
	}
	f.want("two\nlines")
	tr.exit()
	f.want("success, exited with code 0, after 1m0s", "END")
	if f.scan.Scan() && f.scan.Text() != "" {
		t.Errorf("got %q after the end", f.scan.Text())
	}
}

func TestFollowResumes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	run := w.launch(1)
	tr := w.write(run.ID)
	for _, text := range []string{"one", "two", "three"} {
		tr.say(said(text))
	}
	first := w.follow(eventsPath, nil)
	first.want("one", "two")
	_ = first.resp.Body.Close()
	second := w.follow(eventsPath+"?from=0", map[string]string{"Last-Event-ID": first.last})
	second.want("three")
	tr.say(said("four"))
	second.want("four")
	third := w.follow(eventsPath+"?from="+second.last, nil)
	tr.exit()
	third.want("success, exited with code 0, after 1m0s", "END")
	for _, odd := range []string{"nonsense", "-5", "17"} { // for any position sent by a client, it gets complete lines
		f := w.follow(eventsPath, map[string]string{"Last-Event-ID": odd})
		for got := []string{""}; got[0] != "END"; {
			got = f.next()
		}
	}
	w.end(1, run.ID)
	for _, end := range []string{third.last, "99999999999"} {
		if over := w.follow(eventsPath, map[string]string{"Last-Event-ID": end}); over.resp.StatusCode != http.StatusNoContent {
			t.Errorf("after the end at %s: status %d", end, over.resp.StatusCode)
		}
	}
}

// TestFollowEndsWithTheRun: a live log ends even if the transcript has no exit record, as when the VM was lost.
func TestFollowEndsWithTheRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	run := w.launch(1)
	w.write(run.ID).say(said("one"))
	f := w.follow(eventsPath, nil)
	f.want("one")
	w.end(1, run.ID)
	f.want("END")
}

// TestFollowAfterTruncation: the archive removes an incomplete last line before it appends.
func TestFollowAfterTruncation(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	run := w.launch(1)
	tr := w.write(run.ID)
	tr.say(said("one"))
	f := w.follow(eventsPath, nil)
	f.want("one")
	info, err := tr.file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tr.file.WriteString(`{"line":{"seq":2,`); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(w.dir.path(run.ID), info.Size()); err != nil {
		t.Fatal(err)
	}
	if _, err := runlog.ContinueTranscript(tr.file); err != nil {
		t.Fatal(err)
	}
	tr.say(said("two"))
	f.want("two")
}

func TestLiveLogsAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.write(w.launch(1).ID).say(said("one"))
	var open []*follower
	for range 64 {
		f := w.follow(eventsPath, nil)
		f.want("one")
		open = append(open, f)
	}
	if f := w.follow(eventsPath, nil); f.resp.StatusCode != http.StatusServiceUnavailable || f.resp.Header.Get("Retry-After") == "" {
		t.Errorf("one live log too many: status %d", f.resp.StatusCode)
	}
	_ = open[0].resp.Body.Close()
	for range 100 { // the slot is released when the server notices the disconnect
		if f := w.follow(eventsPath, nil); f.resp.StatusCode == http.StatusOK {
			f.want("one")
			return
		}
	}
	t.Error("the slot was not released")
}

func TestLiveLogsEndWithTheServer(t *testing.T) {
	t.Parallel()
	stopping := make(chan struct{})
	w := newWorld(t, func(c *admin.Config) { c.Stopping = stopping })
	w.write(w.launch(1).ID).say(said("one"))
	f := w.follow(eventsPath, nil)
	f.want("one")
	close(stopping)
	rest, err := io.ReadAll(f.resp.Body)
	if err != nil && !errors.Is(err, io.EOF) || strings.Contains(string(rest), "end") {
		t.Errorf("%v, %q", err, rest)
	}
}
