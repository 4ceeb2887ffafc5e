package browser

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience is how long something on a page may take to come true; the machine may be busy.
const patience = 30 * time.Second

// width and height are of an ordinary window, in pixels; narrow is the width of a small phone.
const (
	width, height = 1180, 900
	narrow        = 375
)

//go:embed testdata/driver.js
var driver string

// tab is one tab of the browser.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	bad      []string
	expected map[string]int64 // answers that are errors on purpose, by address
}

// newBrowser starts Chromium with one tab.
func newBrowser(t *testing.T) *tab {
	t.Helper()
	opts := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(need(t, "chromium", "chromium-browser", "google-chrome")), chromedp.CombinedOutput(io.Discard),
		chromedp.WindowSize(width, height), chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("hide-scrollbars", true),
	)
	if os.Geteuid() == 0 {
		opts = append(opts, chromedp.NoSandbox)
	}
	ctx, end := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), opts...)
	t.Cleanup(end)
	return newTab(ctx, t)
}

// another opens a further tab of the same browser.
func (b *tab) another() *tab {
	b.t.Helper()
	return newTab(b.ctx, b.t)
}

func newTab(ctx context.Context, t *testing.T) *tab {
	t.Helper()
	b := &tab{t: t, expected: map[string]int64{}}
	ctx, end := chromedp.NewContext(ctx)
	t.Cleanup(end)
	b.ctx = ctx
	check(t, chromedp.Listen(ctx, b.hear))
	return b
}

// hear takes down what a page does wrong.
func (b *tab) hear(ev any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	wrong := func(format string, args ...any) { b.bad = append(b.bad, fmt.Sprintf(format, args...)) }
	switch e := ev.(type) {
	case *runtime.EventExceptionThrown:
		wrong("exception: %s", thrown(e.ExceptionDetails))
	case *runtime.EventConsoleAPICalled:
		if e.Type == "error" || e.Type == "warning" || e.Type == "assert" {
			var words []string
			for _, a := range e.Args {
				words = append(words, string(a.Value), a.Description)
			}
			wrong("console.%s: %s", e.Type, strings.Join(words, " "))
		}
	case *log.EventEntryAdded:
		if _, ok := b.expected[e.Entry.URL]; !ok && (e.Entry.Level == "error" || e.Entry.Level == "warning") {
			wrong("%s: %s (%s)", e.Entry.Level, e.Entry.Text, e.Entry.URL)
		}
	case *network.EventResponseReceived:
		if e.Response.Status >= 400 && b.expected[e.Response.URL] != e.Response.Status {
			wrong("answer %d of %s", e.Response.Status, e.Response.URL)
		}
	case *network.EventLoadingFailed:
		if !e.Canceled && e.ErrorText != "net::ERR_ABORTED" { // what a page asked for when it was left
			wrong("request failed: %s (%s)", e.ErrorText, e.Type)
		}
	}
}

// clean fails for all that pages did wrong since it was last called.
func (b *tab) clean() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.bad {
		b.t.Errorf("%s", p)
	}
	b.bad = nil
}

// do runs actions within the time that one may take.
func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.t.Fatalf("%v\n%s", err, b.where())
	}
}

// open goes to an address as one types it in, and wants an answer with this status.
func (b *tab) open(url string, status int64) {
	b.t.Helper()
	if status >= 400 {
		b.mu.Lock()
		b.expected[url] = status
		b.mu.Unlock()
	}
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	resp, err := chromedp.Run(ctx, chromedp.NavigateResponse(url))
	if err != nil {
		b.t.Fatalf("open %s: %v", url, err)
	}
	if resp.Status != status {
		b.t.Errorf("open %s: %d, want %d", url, resp.Status, status)
	}
}

// eval runs JavaScript, in which the functions of driver.js are known, and reads its value.
func eval[T any](b *tab, js string) (T, error) {
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[T]("(async () => {"+driver+"\nreturn "+js+"\n})()", chromedp.EvalAwaitPromise))
}

// must is eval where nothing can be in the way.
func must[T any](b *tab, js string) T {
	b.t.Helper()
	v, err := eval[T](b, js)
	if err != nil {
		b.t.Fatalf("%v, of: %s", err, js)
	}
	return v
}

// where says what the page shows.
func (b *tab) where() string {
	text, err := eval[string](b, "location.href + '\\n' + document.title + '\\n' + document.body.innerText")
	if err != nil {
		return err.Error()
	}
	return text
}

// await waits until an expression is true. The page may be left meanwhile.
func (b *tab) await(what, js string) {
	b.t.Helper()
	var last error
	for end := time.Now().Add(patience); time.Now().Before(end); pause(b.ctx) {
		yes, err := eval[bool](b, "Boolean("+js+")")
		if yes && err == nil {
			return
		}
		last = err
	}
	b.t.Fatalf("waiting for %s: nothing in %s (%v)\n%s", what, patience, last, b.where())
}

// reads waits for a text on the page.
func (b *tab) reads(text string) {
	b.t.Helper()
	b.await(fmt.Sprintf("the text %q", text), "flat(document.body.innerText).includes("+quote(text)+")")
}

// thing is something on a page that one can point at.
type thing struct {
	Kind string `json:"kind"`           // button, link, field, summary, entry of kinds in driver.js
	Name string `json:"name"`           // its text or label; from its start, unless Whole
	In   string `json:"in,omitempty"`   // CSS of what holds it
	Has  string `json:"has,omitempty"`  // a text in what holds it; the last such holder counts
	Last bool   `json:"last,omitempty"` // the last of several, else there has to be one alone
}

func (th thing) String() string {
	s := fmt.Sprintf("the %s %q", th.Kind, th.Name)
	if th.In != "" {
		s += " in " + th.In
	}
	if th.Has != "" {
		s += fmt.Sprintf(" with %q", th.Has)
	}
	return s
}

// spot is where a thing is, or why it cannot be clicked.
type spot struct {
	X, Y float64
	Why  string
}

// click moves the pointer to a thing and presses the button.
func (b *tab) click(th thing) {
	b.t.Helper()
	why := "it was not looked for"
	for end := time.Now().Add(patience); time.Now().Before(end); pause(b.ctx) {
		s, err := eval[spot](b, "spot("+quote(th)+", true)")
		if err != nil || s.Why != "" {
			why = fmt.Sprint(s.Why, err)
			continue
		}
		b.do(chromedp.MouseEvent("mouseMoved", s.X, s.Y))
		again, err := eval[spot](b, "spot("+quote(th)+", false)")
		if err != nil || again != s {
			why = fmt.Sprintf("it moves: %+v, %+v, %v", s, again, err)
			continue
		}
		b.do(chromedp.MouseClickXY(s.X, s.Y))
		return
	}
	b.t.Fatalf("click %s: %s\n%s", th, why, b.where())
}

// write clicks into a field, empties it and types.
func (b *tab) write(th thing, text string) {
	b.t.Helper()
	th.Kind = "field"
	b.click(th)
	b.do(chromedp.KeyEvent("a", chromedp.KeyModifiers(2)), chromedp.KeyEvent("\b")) // 2 is Ctrl
	b.do(chromedp.KeyEvent(text))
	if got := must[string](b, "document.activeElement.value"); got != text {
		b.t.Errorf("typed %q into %s, and it holds %q", text, th, got)
	}
}

// choose goes to a list as with the Tab key, and types the name of an entry.
func (b *tab) choose(th thing, entry string) {
	b.t.Helper()
	th.Kind = "field"
	b.await(th.String(), "focus("+quote(th)+")")
	b.do(chromedp.KeyEvent(entry))
	if got := must[string](b, "document.activeElement.value"); got != entry {
		b.t.Errorf("chose %q in %s, and it holds %q", entry, th, got)
	}
}

// front brings a tab before the others: those behind do not renew themselves.
func (b *tab) front() {
	b.t.Helper()
	b.do(chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, page.BringToFront, struct{}{})
		return err
	}))
}

// quote writes a value as JavaScript.
func quote(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // texts and structs of texts only
	}
	return string(data)
}

// thrown puts an exception into words.
func thrown(d *runtime.ExceptionDetails) string {
	text := d.Text
	if d.Exception != nil {
		text += " " + d.Exception.Description
	}
	return fmt.Sprintf("%s (%s:%d)", text, d.URL, d.LineNumber+1)
}
