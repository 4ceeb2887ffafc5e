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

// judge reports all faults of the current page. The page cannot be used afterwards.
func (b *tab) judge(name string) {
	b.t.Helper()
	for _, f := range b.faults(name) {
		b.t.Errorf("%s (%s): %s", name, must[string](b, "location.pathname"), f)
	}
	b.clean()
}

// faults checks the page in a wide and a narrow window, light and dark. Afterwards the page no longer updates, and all
// its folds are open.
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

// axe returns axe's findings that are serious or worse, and logs the others. Without axe it returns nothing.
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

// walk moves through the page with the Tab key only. Chromium counts as the program in front: it draws no focus while another one is, and
// without a screen that is so until it has dealt with the first keys.
func (b *tab) walk() []string {
	b.t.Helper()
	b.do(chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
		return err
	}))
	stops := min(must[int](b, "walk()"), mostStops)
	keys := make([]chromedp.Action[chromedp.Void], 0, stops+8)
	for range stops + 8 { // scrollable elements are stops, too
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

// scheme chooses light or dark, without animations.
func (b *tab) scheme(name string) {
	b.t.Helper()
	b.do(chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: name}, {Name: "prefers-reduced-motion", Value: "reduce"},
		}})
		return err
	}))
}
