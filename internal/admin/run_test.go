package admin_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/runlog"
)

func TestRunPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	run := w.launch(1)
	want(t, w.page("/tasks/acme/shop/1/runs/1"), "Nothing has been written about this run yet.")
	tr := w.write(run.ID)
	tr.say(runlog.Event{Kind: runlog.KindStarted, Model: "some-model"})
	tr.say(runlog.Event{Kind: runlog.KindToolUse, ToolName: "Bash", Input: `{"command":"ls"}`})
	tr.say(runlog.Event{Kind: runlog.KindToolResult, Text: strings.Repeat("ä", 2500), IsError: true})
	tr.say(runlog.Event{Kind: runlog.KindUsage, Usage: &runlog.Usage{}})
	tr.add(runlog.Entry{Line: &runlog.Line{Seq: 5, Stream: runlog.StreamStderr, Text: "a <warning>"}})
	tr.add(runlog.Entry{Line: &runlog.Line{Seq: 6, Stream: runlog.StreamStdout, Text: "noise"}})
	for _, name := range []string{"1", run.ID} {
		body := w.page("/tasks/acme/shop/1/runs/" + name)
		want(t, body, "Be brief.", "Fix &lt;the&gt; bug.", "a comment by eve", "uses Bash", "some-model", "500 more characters", "a &lt;warning&gt;",
			`item wrong`, `data-events="/tasks/acme/shop/1/runs/1/events"`)
		wantNot(t, body, "noise", strings.Repeat("ä", 2001))
	}
	tr.exit()
	w.end(1, run.ID)
	body := w.page("/tasks/acme/shop/1/runs/1")
	want(t, body, "success, exited with code 0, after 1m0s", `<span class="badge good">ok</span>`, "$0.12")
	wantNot(t, body, "data-events")
}

func TestWholeRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	tr := w.write(w.launch(1).ID)
	long := strings.Repeat("<b>long", 400)
	tr.say(runlog.Event{Kind: runlog.KindText, Text: long})
	body := w.page("/tasks/acme/shop/1/runs/1")
	link := regexp.MustCompile(`href="([^"]*/at/[1-9][0-9]*)"`).FindStringSubmatch(body)
	if link == nil {
		t.Fatalf("no link to the full text in:\n%s", content(body))
	}
	resp := do(t, http.MethodGet, w.url+link[1], "", map[string]string{"Authorization": "Bearer " + token})
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.Header.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Fatalf("%v, %s", err, resp.Header.Get("Content-Type"))
	}
	want(t, string(text), long, `{"raw":1}`)
	want(t, w.page("/tasks/acme/shop/1/runs/1/at/0"), "SYSTEM PROMPT\n\nBe brief.", "Fix <the> bug.")
	for _, place := range []string{"999999", "-1", "x"} {
		if status, _ := w.get("/tasks/acme/shop/1/runs/1/at/" + place); status != http.StatusNotFound {
			t.Errorf("at %s: status %d", place, status)
		}
	}
}

func TestRawTranscriptIsServed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	run := w.launch(1)
	w.write(run.ID).exit()
	resp := do(t, http.MethodGet, w.url+"/tasks/acme/shop/1/runs/1/raw", "", map[string]string{"Authorization": "Bearer " + token})
	defer func() { _ = resp.Body.Close() }()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(w.dir.path(run.ID))
	if err != nil || string(got) != string(whole) {
		t.Errorf("error %v, got %s", err, got)
	}
	want(t, resp.Header.Get("Content-Disposition"), "attachment", run.ID)
}

// TestPaging walks a long transcript forward and back: every entry is shown once in each direction.
func TestPaging(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	run := w.launch(1)
	tr := w.write(run.ID)
	const n = 450
	for i := range n {
		tr.say(runlog.Event{Kind: runlog.KindText, Text: fmt.Sprintf("entry %d.", i)})
	}
	tr.exit()
	w.end(1, run.ID)
	path := "/tasks/acme/shop/1/runs/1"
	entry := regexp.MustCompile(`entry \d+\.`)
	for _, way := range []struct{ first, link string }{{"?from=0", "Later"}, {"?from=end", "Earlier"}} {
		seen := map[string]bool{}
		at, pages := way.first, 0
		next := regexp.MustCompile(`href="` + path + `(\?from=\d+)">` + way.link)
		for ; at != "" && pages < 20; pages++ {
			body := w.page(path + at)
			for _, e := range entry.FindAllString(body, -1) {
				seen[e] = true
			}
			at = ""
			if m := next.FindStringSubmatch(body); m != nil {
				at = m[1]
			}
		}
		if len(seen) != n || pages < 3 || pages > 5 {
			t.Errorf("%s: got %d entries on %d pages", way.link, len(seen), pages)
		}
	}
	want(t, w.page(path+"?from=end"), "entry 449.", "exited", "up to 100 %")
	want(t, w.page(path+"?from=1000000000"), "up to 100 %")
	want(t, w.page(path+"?from=nonsense"), "entry 0.")
}

// TestTornTranscript: the page handles an incomplete last line and malicious lines.
func TestTornTranscript(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	run := w.launch(1)
	tr := w.write(run.ID)
	if _, err := tr.file.WriteString("nonsense\n\n[1,2]\n{\"events\":[{\"kind\":\"\\u0000<x>\",\"text\":\"odd\"}]}\n{\"line\":{\"seq\":9,"); err != nil {
		t.Fatal(err)
	}
	body := w.page("/tasks/acme/shop/1/runs/1?from=end")
	want(t, body, "odd")
	wantNot(t, body, "<x>", "nonsense")
	if err := os.WriteFile(w.dir.path(run.ID), []byte("\n{\"events\":[{\"kind\":\"text\",\"text\":\"headless\"}]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	body = w.page("/tasks/acme/shop/1/runs/1")
	want(t, body, "headless")
	wantNot(t, body, "System prompt")
	if err := os.WriteFile(w.dir.path(run.ID), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	want(t, w.page("/tasks/acme/shop/1/runs/1"), "The transcript has not started yet.")
}

// TestEarlierLife: a restarted task drops its runs, but their files remain accessible.
func TestEarlierLife(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	run := w.launch(1)
	w.write(run.ID).exit()
	w.end(1, run.ID)
	w.apply(1, stateClosed())
	w.launch(1)
	body := w.page("/tasks/acme/shop/1/runs/1")
	want(t, body, "earlier life", "exited with code 0")
}
