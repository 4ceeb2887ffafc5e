package browser

import (
	"os"
	"path/filepath"

	"github.com/chromedp/chromedp"
)

// picture keeps what the window shows of a page, down to a height, light and dark, in the folder that
// ERRAND_PICTURES names: the pictures of the README. The page has to be loaded anew after it.
func (b *tab) picture(name string, tall int64) {
	b.t.Helper()
	dir := os.Getenv("ERRAND_PICTURES")
	if dir == "" {
		return
	}
	b.do(chromedp.MouseEvent("mouseMoved", 0, 0))
	must[bool](b, "freeze() && (document.activeElement && document.activeElement.blur(), scrollTo(0, 0), true)")
	b.do(chromedp.EmulateViewport(width, tall))
	for _, scheme := range []string{"light", "dark"} {
		b.scheme(scheme)
		b.keep(filepath.Join(dir, name+"-"+scheme+".png"), chromedp.CaptureScreenshot())
	}
	b.scheme("light")
	b.window(width, false)
}

// shoot keeps a picture of the whole page in the folder that ERRAND_SHOTS names, for people to look at.
func (b *tab) shoot(name string) {
	b.t.Helper()
	if dir := os.Getenv("ERRAND_SHOTS"); dir != "" {
		b.keep(filepath.Join(dir, name+".png"), chromedp.FullScreenshot(100))
	}
}

func (b *tab) keep(file string, take chromedp.Action[[]byte]) {
	b.t.Helper()
	png, err := chromedp.Run(b.ctx, take)
	check(b.t, err)
	check(b.t, os.MkdirAll(filepath.Dir(file), 0o755))
	check(b.t, os.WriteFile(file, png, 0o644))
}
