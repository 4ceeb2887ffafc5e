package bench

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/server"
)

// quick is a life without waiting; sweeps come as often as in production, status edits too.
const quick = `timing:
  gather: 60ms
  status_gap: 10s
  settle: 0s
  backoff: 150ms
  recheck: 150ms
  poll_fast: 60ms
  poll_slow: 60ms
  poll_gap: 30ms
  progress: 300ms
  retry: 100ms
  writes_burst: 2000
  writes_every: 1ms
  objects_every: 1ms
  shutdown: 1s
`

// compiles matches the commands that would make every life wait for a compiler.
var compiles = regexp.MustCompile(`gofmt -l \. ; |go vet \./\.\.\. && go test \./\.\.\.|go vet \./\.\.\.|go test \./\.\.\.`)

// cheap is the demo's model and repository without the compiler.
func cheap(tb testing.TB) (rules string, files map[string]string) {
	tb.Helper()
	data, err := os.ReadFile("../../internal/demo/script.yaml")
	check(tb, err)
	dir := tb.TempDir()
	check(tb, demo.WriteFixture(dir))
	files = map[string]string{}
	list, err := os.ReadDir(dir)
	check(tb, err)
	for _, f := range list {
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		check(tb, err)
		files[f.Name()] = compiles.ReplaceAllString(string(text), "echo tested")
	}
	return compiles.ReplaceAllString(string(data), "echo tested"), files
}

// world starts the stand-ins and errand with every call to GitHub in the ledger.
func world(tb testing.TB, l *ledger, timing string) *demo.World {
	tb.Helper()
	s := prepare(tb)
	dir := tb.TempDir()
	log, err := os.Create(filepath.Join(dir, "errand.log"))
	check(tb, err)
	exe, err := os.Executable()
	check(tb, err)
	rules, files := cheap(tb)
	w, err := demo.New(tb.Context(), demo.Config{
		Dir: dir, BinDir: s.bin, Agent: []string{exe, "simagent"}, StandIn: true, Kind: "plain", Script: rules, Files: files, Extra: timing,
		Key: s.key, Log: zerolog.New(log).With().Timestamp().Logger(), Version: "bench",
		Options: func(o *server.Options) {
			o.Transport = l.through(http.DefaultTransport)
			o.Hooks.Upstream = func(next http.RoundTripper) http.RoundTripper { return onlyGit(l.through(next), next) }
		},
	})
	check(tb, err)
	tb.Cleanup(func() {
		if err := w.Close(); err != nil {
			tb.Error(err)
		}
		if err := log.Close(); err != nil {
			tb.Error(err)
		}
		if tb.Failed() {
			text, _ := os.ReadFile(log.Name())
			tb.Logf("the last of the log:\n%s", text[max(0, len(text)-4000):])
		}
	})
	return w
}

// onlyGit keeps calls to the model out of the ledger.
func onlyGit(git, other http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		if strings.Contains(req.URL.Path, ".git/") {
			return git.RoundTrip(req)
		}
		return other.RoundTrip(req)
	})
}

// play plays the demo's whole life.
func play(tb testing.TB, w *demo.World) demo.Result {
	tb.Helper()
	p := &demo.Play{World: w, Say: func(string, ...any) {}, Wait: func(string, time.Duration) {}, Patience: time.Minute}
	res, err := p.Run(tb.Context())
	check(tb, err)
	return res
}

func TestCallsOfALife(t *testing.T) {
	t.Parallel()
	l := &ledger{}
	w := world(t, l, quick)
	play(t, w)
	list := l.list()
	for _, p := range []forge.Purpose{forge.ForTask, forge.ForPoll, forge.ForSweep, forge.ForStart, forGit} {
		by, sum := counts(list, p)
		t.Logf("%s: %d requests\n%s", p, sum, table(by))
	}
	if os.Getenv("ERRAND_BENCH_TRACE") != "" {
		for n, e := range list {
			t.Logf("%3d %-5s %s", n, e.purpose, e.kind)
		}
	}
}
