package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// thing identifies an element on a page.
type thing struct {
	Kind string `json:"kind"`           // button, link, field, summary, entry of kinds in driver.js
	Name string `json:"name"`           // its text or label; from its start, unless Whole
	In   string `json:"in,omitempty"`   // CSS selector of its container
	Has  string `json:"has,omitempty"`  // a text in its container; the last such container counts
	Last bool   `json:"last,omitempty"` // the last of several matches; otherwise exactly one must match
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

// spot is the position of a thing, or the reason why it cannot be clicked.
type spot struct {
	X, Y float64
	Why  string
}

// click moves the pointer to a thing and presses the button.
func (b *tab) click(th thing) {
	b.t.Helper()
	why := "not searched yet"
	for end := time.Now().Add(patience); time.Now().Before(end); pause(b.ctx) {
		s, err := eval[spot](b, "spot("+quote(th)+", true)")
		if err != nil || s.Why != "" {
			why = fmt.Sprint(s.Why, err)
			continue
		}
		b.do(chromedp.MouseEvent("mouseMoved", s.X, s.Y))
		again, err := eval[spot](b, "spot("+quote(th)+", false)")
		if err != nil || again != s {
			why = fmt.Sprintf("its position changes: %+v, %+v, %v", s, again, err)
			continue
		}
		b.do(chromedp.MouseClickXY(s.X, s.Y))
		return
	}
	b.t.Fatalf("click %s: %s\n%s", th, why, b.where())
}

// write clicks into a field, clears it and types.
func (b *tab) write(th thing, text string) {
	b.t.Helper()
	th.Kind = "field"
	b.click(th)
	b.do(chromedp.KeyEvent("a", chromedp.KeyModifiers(2)), chromedp.KeyEvent("\b")) // 2 is Ctrl
	b.do(chromedp.KeyEvent(text))
	if got := must[string](b, "document.activeElement.value"); got != text {
		b.t.Errorf("typed %q into %s, got %q", text, th, got)
	}
}

// choose focuses a list as with the Tab key, and types the name of an entry.
func (b *tab) choose(th thing, entry string) {
	b.t.Helper()
	th.Kind = "field"
	b.await(th.String(), "focus("+quote(th)+")")
	b.do(chromedp.KeyEvent(entry))
	if got := must[string](b, "document.activeElement.value"); got != entry {
		b.t.Errorf("chose %q in %s, got %q", entry, th, got)
	}
}

// front brings a tab to the front, because background tabs do not refresh.
func (b *tab) front() {
	b.t.Helper()
	b.do(chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, page.BringToFront, struct{}{})
		return err
	}))
}

// keys types a text or control keys without a mouse.
func (b *tab) keys(text string) {
	b.t.Helper()
	b.do(chromedp.KeyEvent(text))
}

// tabTo goes to a thing with the Tab key alone.
func (b *tab) tabTo(th thing) {
	b.t.Helper()
	b.await(th.String(), "the("+quote(th)+")")
	for range mostStops {
		b.keys("\t")
		if must[bool](b, "document.activeElement === the("+quote(th)+")") {
			return
		}
	}
	b.t.Fatalf("the Tab key does not reach %s\n%s", th, b.where())
}

// quote formats a value as JavaScript.
func quote(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // texts and structs of texts only
	}
	return string(data)
}
