package browser

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/heavytest"
)

// faulty is a page with one fault of each kind.
const faulty = `<!doctype html><html lang="en"><head><title>Faulty</title><style>a:focus { outline: none }</style></head>
<body><main><h1>Faulty</h1><a href="#x">seen by nobody</a> <button id="far">far</button>
<p style="width: 700px">wide</p><p style="color: #bbb; background: #fff">pale</p><input><img src="/gone.png">
<script>
document.getElementById("far").addEventListener("focus", (e) => e.target.blur());
document.querySelector("a").addEventListener("keydown", (e) => e.preventDefault());
console.error("loud"); setTimeout(() => { throw new Error("thrown"); });
</script></main></body></html>`

// TestHeavyFaultsAreNoticed runs the checks on a page that violates each of them. It runs before the parallel tests, so
// that axe is installed once.
func TestHeavyFaultsAreNoticed(t *testing.T) {
	heavytest.Mark(t)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, faulty) // skips without a browser
	}))
	t.Cleanup(srv.Close)
	b := newBrowser(t)
	b.open(srv.URL+"/", 200)
	got := b.faults("faulty")
	b.mu.Lock()
	got = append(got, b.bad...)
	b.mu.Unlock()
	want := []string{
		"px wide", "the focus is not to be seen", "the Tab key does not reach it", "console.error", "loud", "exception", "thrown", "answered 404",
	}
	if b.axeSource != "" {
		want = append(want, "serious: color-contrast", "critical: label", "critical: image-alt")
	}
	all := strings.Join(got, "\n")
	for _, w := range want {
		if !strings.Contains(all, w) {
			t.Errorf("not reported: %s", w)
		}
	}
	if t.Failed() {
		t.Log(all)
	}
}
