package watch_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/watch"
)

// TestRateLimitIsLoggedOnce: a sweep that hits one limit at many repositories logs one line; every other error has its own
// line. The sweep's error tells whether it helps to wait.
func TestRateLimitIsLoggedOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault   simgithub.Fault
		refused bool
		lines   int
		says    string
	}{
		"primary limit":   {simgithub.Fault{Primary: true, Reset: 3600}, false, 1, `"repositories":6`},
		"secondary limit": {simgithub.Fault{Secondary: true, RetryAfter: 3600}, false, 1, `"repositories":6`},
		"without issues":  {simgithub.Fault{Status: http.StatusGone}, true, 6, `"repository":"acme/r4"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newSweepWorld(t)
			for i := range 5 {
				r := fmt.Sprintf("r%d", i)
				check(t, errOf(l.sim.SeedRepo(simgithub.RepoSeed{Owner: "acme", Name: r, Files: map[string]string{"README.md": "# r\n"}})))
				check(t, errOf(l.sim.Install("acme/"+r)))
			}
			var log bytes.Buffer
			cfg := l.cfg
			cfg.Log = zerolog.New(&log)
			c.fault.Path = "^/repos/acme/[^/]+/issues"
			check(t, l.sim.Fault(c.fault))
			err := watch.NewSweeper(cfg).SweepState(t.Context())
			if !errors.Is(err, watch.ErrIncomplete) || errors.Is(err, watch.ErrRefused) != c.refused {
				t.Errorf("a sweep that could not read the repositories ended with %v", err)
			}
			if n := strings.Count(log.String(), `"level":"warn"`); n != c.lines || !strings.Contains(log.String(), c.says) {
				t.Errorf("got %d lines:\n%s", n, log.String())
			}
		})
	}
}
