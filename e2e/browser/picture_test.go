package browser

import (
	"os"
	"path/filepath"

	"github.com/chromedp/chromedp"
)

// picture saves the top of a page as shown in the window, light and dark, in the directory ERRAND_PICTURES: the
// pictures of the README. The page must be reloaded afterwards.
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

// shoot saves a picture of the whole page in the directory ERRAND_SHOTS, for people.
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
