package operator

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/errand-bot/errand/internal/buildtest"
	"github.com/errand-bot/errand/internal/cli/clitest"
)

// writer is a function as an io.Writer.
type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

// restarts is an errand that answers each request with the next of these boards, and breaks the connection for an empty one. After the
// last one it calls stop.
func restarts(t *testing.T, stop func(), boards ...string) string {
	t.Helper()
	var requests atomic.Int32
	errand := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := int(requests.Add(1)) - 1
		switch {
		case n >= len(boards):
			stop() // Ctrl-C
		case boards[n] == "":
			panic(http.ErrAbortHandler)
		case boards[n] == "401":
			w.WriteHeader(http.StatusUnauthorized)
		default:
			_, _ = fmt.Fprint(w, boards[n])
		}
	}))
	t.Cleanup(errand.Close)
	return strings.TrimPrefix(errand.URL, "http://")
}

// watched returns what watch writes, in its writes, for an errand with these answers.
func watched(t *testing.T, size func() (int, int), boards ...string) (writes []string, err error) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	cfg := loaded(t, clitest.Config(t, restarts(t, stop, boards...), ""))
	out := writer(func(p []byte) (int, error) {
		writes = append(writes, string(p))
		return len(p), nil
	})
	err = (&watcher{out: out, size: size, every: time.Millisecond}).watch(ctx, cfg)
	return writes, err
}

// later is the sample board some time later, with nothing changed but the time.
func later(at string) string { return strings.Replace(sampleBoard, "12:00:00Z", at+"Z", 1) }

// TestWatchPrintsChanges: without a terminal, watch prints a report only if something has changed, says once that errand cannot be reached,
// and prints the report when it is back. Nothing that it writes controls a terminal.
func TestWatchPrintsChanges(t *testing.T) {
	t.Parallel()
	changed := strings.Replace(later("12:05:00"), "2nd in the queue", "1st in the queue", 1)
	writes, err := watched(t, nil, sampleBoard, later("12:01:00"), later("12:02:00"), changed, changed, "", "", "", changed, changed)
	if err != nil || len(writes) != 4 {
		t.Fatalf("got %v and %d reports, want 4: %q", err, len(writes), writes)
	}
	for i, want := range []string{"2nd in the queue", "1st in the queue", "Trying again every 1ms until Ctrl-C.\n", "1st in the queue"} {
		if !strings.Contains(writes[i], want) || strings.Contains(writes[i], "\x1b") || i > 0 && !strings.HasPrefix(writes[i], "\n") {
			t.Errorf("write %d lacks %q: %q", i, want, writes[i])
		}
	}
	if !strings.Contains(writes[2], "no answer from errand") {
		t.Errorf("does not say what is wrong: %q", writes[2])
	}
}

// TestWatchOnTerminal: on a terminal each report replaces the previous one in a single write, without clearing the screen in between, in the
// size of the terminal; while errand is down, the latest report stays.
func TestWatchOnTerminal(t *testing.T) {
	t.Parallel()
	many := strings.Replace(sampleBoard, `"tasks": [`, `"tasks": [`+strings.Repeat(`{"repo": "acme/a-rather-long-name-of-a-repository", "issue": 7, "phase": "implementing", "next": "👍 👍 👍 `+strings.Repeat("x", 500)+`", "money": {}},`, 60), 1)
	hostile := strings.ReplaceAll(sampleBoard, "acme/web", `acme/\u001b[2Jweb`)
	for name, size := range map[string][2]int{"80 columns": {80, 24}, "wide": {300, 100}, "tiny": {1, 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			writes, err := watched(t, func() (int, int) { return size[0], size[1] }, many, "", later("12:01:00"), hostile)
			if err != nil || len(writes) != 4 {
				t.Fatalf("got %v and %d writes, want 4", err, len(writes))
			}
			for i, text := range writes {
				if got := strings.Count(text, clearScreen); got != 0 && i > 0 || i == 0 && got != 1 {
					t.Errorf("write %d clears the screen %d times", i, got)
				}
				lines := onTerminal(t, text)
				if len(lines) > size[1]-1 {
					t.Errorf("write %d has %d lines on a terminal of %d", i, len(lines), size[1])
				}
				for _, line := range lines {
					if utf8.RuneCountInString(line) > size[0] {
						t.Errorf("write %d has a line that is too long: %q", i, line)
					}
				}
			}
			if name == "tiny" {
				return
			}
			if !strings.Contains(writes[1], "Trying again") || !strings.Contains(writes[1], "acme/a-rather") {
				t.Errorf("while errand is down: %q", writes[1])
			}
			if !strings.Contains(writes[2], "acme/web#12") || strings.Contains(writes[2], "Trying again") || strings.Contains(writes[2], "more lines") {
				t.Errorf("after errand is back: %q", writes[2])
			}
			if got := strings.Contains(writes[0], "WAITING FOR"); got != (name == "80 columns") {
				t.Errorf("the table for narrow terminals is shown: %v", got)
			}
			if name == "80 columns" && !strings.Contains(writes[0], "more lines; `errand tasks` lists all tasks") {
				t.Errorf("does not say that lines are missing: %q", writes[0])
			}
		})
	}
}

var sequence = regexp.MustCompile(`\x1b\[[?0-9]*[a-zA-Z]`)

// onTerminal returns the lines of a report, and checks that it contains watch's own control sequences only.
func onTerminal(t *testing.T, text string) []string {
	t.Helper()
	if !strings.HasPrefix(strings.TrimPrefix(text, clearScreen), cursorHome+wrapOff) || !strings.HasSuffix(text, clearRest+wrapOn) {
		t.Errorf("%.60q … does not begin at the top or leaves old lines", text)
	}
	for _, s := range sequence.FindAllString(text, -1) {
		switch s {
		case clearScreen, cursorHome, clearLine, clearRest, wrapOff, wrapOn:
		default:
			t.Errorf("the control sequence %q is not watch's", s)
		}
	}
	text = sequence.ReplaceAllString(strings.TrimPrefix(text, clearScreen), "")
	if strings.ContainsAny(text, "\x1b\x07\r") {
		t.Errorf("%q contains control characters", text)
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// TestWatchEndsWithReason: watch does not repeat what cannot succeed.
func TestWatchEndsWithReason(t *testing.T) {
	t.Parallel()
	for name, boards := range map[string][]string{"no errand": {""}, "wrong token": {"401"}, "another token after a restart": {sampleBoard, "", "401"}, "no board": {"{"}} {
		if writes, err := watched(t, nil, boards...); err == nil {
			t.Errorf("%s: no error after %q", name, writes)
		}
	}
}

// TestWatchInRealTerminal: in a terminal, the program draws.
func TestWatchInRealTerminal(t *testing.T) {
	t.Parallel()
	script, err := exec.LookPath("script")
	if err != nil {
		t.Skip("skipped: script is not installed, which makes a terminal")
	}
	file, dir := clitest.Config(t, boardServer(t), ""), t.TempDir()
	if err := buildtest.Program(t.Context(), dir, "errand"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, script, "-qec", "stty cols 60 rows 12; exec "+filepath.Join(dir, "errand")+" status --watch -c "+file, "/dev/null")
	for name, value := range clitest.Secrets(t) {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = cmd.Process.Kill(), cmd.Wait() }()
	var text string
	for buffer := make([]byte, 4096); !strings.Contains(text, wrapOn); {
		n, err := out.Read(buffer)
		if text += string(buffer[:n]); err != nil {
			t.Fatalf("%v after %q", err, text)
		}
	}
	for _, line := range onTerminal(t, strings.ReplaceAll(text, "\r\n", "\n")) {
		if utf8.RuneCountInString(line) > 60 {
			t.Errorf("the line %q is too long", line)
		}
	}
	if !strings.Contains(text, "acme/shop#3") {
		t.Errorf("no report: %q", text)
	}
}
