package browser

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

//go:embed testdata/judge.js
var judgeJS string

// mostStops bounds a walk with the Tab key.
const mostStops = 250

// judge fails for all that is wrong with the page that is shown, which is of no use any more after it.
func (b *tab) judge(name string) {
	b.t.Helper()
	for _, f := range b.faults(name) {
		b.t.Errorf("%s (%s): %s", name, must[string](b, "location.pathname"), f)
	}
	b.clean()
}

// faults holds the page against what every page has to be, wide and narrow, light and dark. It stands
// still from then on, and all its folds are open.
func (b *tab) faults(name string) (faults []string) {
	b.t.Helper()
	add := func(where string, list []string) {
		for _, f := range list {
			faults = append(faults, where+": "+f)
		}
	}
	must[bool](b, "freeze()")
	b.window(width, false)
	b.scheme("light")
	add("keyboard", b.walk())
	must[bool](b, "unfold()")
	b.shoot(name + "-light")
	add("light", b.axe(nil))
	b.scheme("dark")
	b.shoot(name + "-dark")
	add("dark", b.axe([]string{"color-contrast"}))
	b.window(narrow, true)
	b.shoot(name + "-phone")
	add("phone", must[[]string](b, fmt.Sprintf("narrowFaults(%d)", narrow)))
	add("phone", b.axe([]string{"target-size"}))
	b.window(width, false)
	b.scheme("light")
	return faults
}

// axe returns what axe calls serious or worse, and logs the rest. Without axe it has nothing to say.
func (b *tab) axe(rules []string) []string {
	b.t.Helper()
	if b.axeSource == "" {
		return nil
	}
	b.do(chromedp.Evaluate[chromedp.Void]("window.axe || (() => {" + b.axeSource + "})(); 0"))
	var bad []string
	for _, f := range must[[]string](b, "axeFaults("+quote(rules)+")") {
		if strings.HasPrefix(f, "serious") || strings.HasPrefix(f, "critical") {
			bad = append(bad, f)
		} else {
			b.t.Logf("%s: %s", must[string](b, "location.pathname"), f)
		}
	}
	return bad
}

// walk goes through the page with the Tab key alone.
func (b *tab) walk() []string {
	b.t.Helper()
	stops := min(must[int](b, "walk()"), mostStops)
	keys := make([]chromedp.Action[chromedp.Void], 0, stops+8)
	for range stops + 8 { // what scrolls is a stop, too
		keys = append(keys, chromedp.KeyEvent("\t"))
	}
	b.do(keys...)
	return must[[]string](b, "walkFaults()")
}

// window sets the width of the window.
func (b *tab) window(wide int64, phone bool) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(wide, height, func(p *emulation.SetDeviceMetricsOverrideParams, _ *emulation.SetTouchEmulationEnabledParams) {
		p.Mobile = phone
	}))
}

// scheme chooses light or dark; nothing moves by itself in either.
func (b *tab) scheme(name string) {
	b.t.Helper()
	b.do(chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: name}, {Name: "prefers-reduced-motion", Value: "reduce"},
		}})
		return err
	}))
}
