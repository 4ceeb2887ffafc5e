package browser

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience is the timeout of a condition on a page; the machine may be busy.
const patience = 4 * time.Minute

// width and height are those of an ordinary window, in pixels; narrow is the width of a small phone.
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

	axeSource string // empty if not available

	mu       sync.Mutex
	bad      []string
	expected map[string]int64 // expected error answers, by address
}

// newBrowser starts Chromium with one tab.
func newBrowser(t *testing.T) *tab {
	t.Helper()
	opts := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(chromium(t)), chromedp.CombinedOutput(io.Discard),
		chromedp.WindowSize(width, height), chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("hide-scrollbars", true),
	)
	if os.Geteuid() == 0 {
		opts = append(opts, chromedp.NoSandbox)
	}
	ctx, end := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), opts...)
	t.Cleanup(end)
	b := newTab(ctx, t)
	b.axeSource = axeSource(t)
	return b
}

// another opens another tab of the same browser.
func (b *tab) another() *tab {
	b.t.Helper()
	n := newTab(b.ctx, b.t)
	n.axeSource = b.axeSource
	return n
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

// hear records a page's errors.
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
			wrong("%[2]s answered %[1]d", e.Response.Status, e.Response.URL)
		}
	case *network.EventLoadingFailed:
		if !e.Canceled && e.ErrorText != "net::ERR_ABORTED" { // requests of a page that was left
			wrong("request failed: %s (%s)", e.ErrorText, e.Type)
		}
	}
}

// clean reports all errors of pages since its last call.
func (b *tab) clean() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.bad {
		b.t.Errorf("%s", p)
	}
	b.bad = nil
}

// do runs actions with a timeout.
func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.t.Fatalf("%v\n%s", err, b.where())
	}
}

// open navigates to an address and expects an answer with this status.
func (b *tab) open(url string, status int64) {
	b.t.Helper()
	if status >= 400 {
		b.expect(url, status)
	}
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	resp, err := chromedp.Run(ctx, chromedp.NavigateResponse(url))
	if err != nil || resp == nil {
		b.t.Fatalf("open %s: answer %v, %v", url, resp, err)
	}
	if resp.Status != status {
		b.t.Errorf("open %s: %d, want %d", url, resp.Status, status)
	}
}

// expect marks an error as the expected answer of an address.
func (b *tab) expect(url string, status int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expected[url] = status
}

// eval runs JavaScript, which can use the functions of driver.js, and returns its value.
func eval[T any](b *tab, js string) (T, error) {
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[T]("(async () => {"+driver+judgeJS+"\nreturn "+js+"\n})()", chromedp.EvalAwaitPromise))
}

// must is eval that fails the test on an error.
func must[T any](b *tab, js string) T {
	b.t.Helper()
	v, err := eval[T](b, js)
	if err != nil {
		b.t.Fatalf("%v, of: %s", err, js)
	}
	return v
}

// where returns the text of the page.
func (b *tab) where() string {
	text, err := eval[string](b, "location.href + '\\n' + document.title + '\\n' + document.body.innerText")
	if err != nil {
		return err.Error()
	}
	return text
}

// await waits until an expression is true. The page may change meanwhile.
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
	b.t.Fatalf("waiting for %s: timeout after %s (%v)\n%s", what, patience, last, b.where())
}

// reads waits for a text on the page.
func (b *tab) reads(text string) {
	b.t.Helper()
	b.await(fmt.Sprintf("the text %q", text), "flat(document.body.innerText).includes("+quote(text)+")")
}

// thrown returns the text of an exception.
func thrown(d *runtime.ExceptionDetails) string {
	text := d.Text
	if d.Exception != nil {
		text += " " + d.Exception.Description
	}
	return fmt.Sprintf("%s (%s:%d)", text, d.URL, d.LineNumber+1)
}
