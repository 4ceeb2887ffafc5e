package bench

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/rsatest"
	"github.com/errand-bot/errand/internal/server"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/state"
)

// statusGap is the time between two edits of the status comment, as in production.
const statusGap = 10 * time.Second

// quick configures a life without waiting; the intervals of sweeps and status edits are production's.
const quick = `timing:
  gather: 60ms
  poll_fast: 60ms
  poll_slow: 60ms
  shutdown: 1s
`

// shortTiming does the same for the timing that no configuration sets.
func shortTiming() *server.Timing {
	t := server.DefaultTiming()
	t.GatherTalk, t.GatherMax = 100*time.Millisecond, time.Second
	t.StatusGap, t.Settle, t.Backoff, t.Recheck = statusGap, 0, 150*time.Millisecond, 150*time.Millisecond
	t.PollGap, t.ProgressEvery, t.JobRetry = 30*time.Millisecond, 300*time.Millisecond, 100*time.Millisecond
	t.WritesBurst, t.WritesEvery, t.ObjectsEvery = 2000, time.Millisecond, time.Millisecond
	return &t
}

// compiles matches commands that run the compiler, which would slow down every life.
var compiles = regexp.MustCompile(`gofmt -l \. ; |go vet \./\.\.\. && go test \./\.\.\.|go vet \./\.\.\.|go test \./\.\.\.`)

// withoutCompiler is the demo's model and repository without the compiler.
func withoutCompiler(tb testing.TB) (rules string, files map[string]string) {
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

// world starts the simulators and errand, and records every call to GitHub in the ledger.
func world(tb testing.TB, l *ledger, settings string, timing *server.Timing) *demo.World {
	tb.Helper()
	s := prepare(tb)
	dir := tb.TempDir()
	log, err := os.Create(filepath.Join(dir, "errand.log"))
	check(tb, err)
	exe, err := os.Executable()
	check(tb, err)
	rules, files := withoutCompiler(tb)
	w, err := demo.New(tb.Context(), demo.Config{
		Dir: dir, BinDir: s.bin, Agent: []string{exe, "simagent"}, StandIn: true, Kind: "plain", Script: rules, Files: files, Extra: settings, Timing: timing,
		Key: rsatest.Key(), Log: zerolog.New(log).With().Timestamp().Logger(), Version: "bench",
		Options: func(o *server.Options) {
			o.Transport = l.countRequests(webtest.Transport())
			o.Hooks.Upstream = func(next http.RoundTripper) http.RoundTripper { return onlyGit(l.countRequests(next), next) }
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
			tb.Logf("end of the log:\n%s", text[max(0, len(text)-4000):])
		}
	})
	return w
}

// onlyGit leaves calls to the model out of the ledger.
func onlyGit(git, other http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		if strings.Contains(req.URL.Path, ".git/") {
			return git.RoundTrip(req)
		}
		return other.RoundTrip(req)
	})
}

// play plays the demo's complete life.
func play(tb testing.TB, w *demo.World) demo.Result {
	tb.Helper()
	p := &demo.Play{World: w, Say: func(string, ...any) {}, Wait: func(string, time.Duration) {}, Patience: 5 * time.Minute}
	res, err := p.Run(tb.Context())
	check(tb, err)
	return res
}

// budget is the maximum number of calls of each kind in a complete life, except edits of the status comment, whose
// number depends on the duration.
func budget() map[string]int {
	return map[string]int{
		"GET /collaborators/…/permission":                  7, // once for each event: the assignment, a comment, two approvals, two reviews; and before a review is requested again
		"GET /issues/N":                                    1,
		"graphql query repository":                         5, // settings, discussion and base; the base's instructions for agents; the template of the pull request; auto-merge, before a push; a pending review
		"graphql query node":                               5, // a plan with its 👍 and its issue, for each approval; a comment that asks for a change, twice; the pending review
		"graphql query repository (review threads)":        4, // before the round, and before replies are added and submitted
		"graphql mutation minimizeComment (fold)":          1,
		"graphql mutation updateRefs (branch)":             2,
		"GET /git/matching-refs/heads/…":                   1,
		"GET /git/ref/heads/…":                             1,
		"GET /git/trees/SHA":                               2, // the base's build files; the tree that is published
		"POST /git/trees":                                  2,
		"POST /git/commits":                                2,
		"POST /issues/N/comments":                          7, // status, three plans, the pull request, the statement of provenance, the end
		"POST /issues/N/reactions":                         1,
		"POST /issues/comments/N/reactions":                1,
		"POST /pulls":                                      1,
		"POST /pulls/N/requested_reviewers":                2, // when it is opened, and after the round
		"GET /pulls/N/reviews":                             1, // who requested changes
		"graphql mutation addPullRequestReview":            1,
		"graphql mutation addPullRequestReviewThreadReply": 2,
		"graphql mutation submitPullRequestReview":         1,
		"POST /app/installations/N/access_tokens":          1, // for git; the tokens for other calls are created when errand starts
	}
}

// mostCalls is the maximum number of calls of GitHub's API in a life, except reaction polls. It includes the two edits
// of the status comment in a life of half a minute. On a slow machine, the last approval's threads are read before the merge.
const mostCalls = 53

const statusEdit = "PATCH /issues/comments/N"

// TestCallsOfALife checks the budget: no kind of call exceeds its maximum, all kinds are in the budget, and the sum is
// at most mostCalls.
func TestCallsOfALife(t *testing.T) {
	t.Parallel()
	l := &ledger{}
	w := world(t, l, quick, shortTiming())
	until(t, "the sweep at the start", func() bool {
		by, _ := counts(l.list(), forge.ForSweep)
		return by["GET /issues"] == 3 // by label, by assignee, and new ones that may mention errand
	})
	before := len(l.list())
	began := time.Now()
	res := play(t, w)
	took := time.Since(began)
	list := l.list()[before:]
	by, sum := counts(list, forge.ForTask)
	t.Logf("%d calls for the task\n%s", sum, table(by))
	for _, p := range []forge.Purpose{forge.ForPoll, forge.ForSweep, forge.ForStart, forGit} {
		also, n := counts(list, p)
		t.Logf("%s: %d\n%s", p, n, table(also))
	}
	edits := by[statusEdit]
	delete(by, statusEdit)
	for kind, n := range by {
		if most := budget()[kind]; n > most {
			t.Errorf("got %d × %s, want at most %d", n, kind, most)
		}
	}
	if sum-edits > mostCalls-2 {
		t.Errorf("got %d calls without edits of the status comment, want at most %d", sum-edits, mostCalls-2)
	}
	if most := 2 + int(took/statusGap); edits > most {
		t.Errorf("%d edits of the status comment in %s", edits, took)
	}
	if res.Runs != 5 {
		t.Errorf("got only %d runs in the complete life", res.Runs)
	}
	if os.Getenv("ERRAND_BENCH_TRACE") != "" {
		for n, e := range list {
			t.Logf("%3d %-5s %s", n, e.purpose, e.kind)
		}
	}
}

// TestIdleTaskMakesNoCalls: while a pull request is open and nothing happens, errand sends no requests to GitHub.
func TestIdleTaskMakesNoCalls(t *testing.T) {
	t.Parallel()
	l := &ledger{}
	timing := shortTiming()
	timing.StatusGap = 50 * time.Millisecond
	w := world(t, l, quick, timing)
	ada := w.GitHub.As(demo.Maintainer)
	_, err := ada.PushCommit(demo.Full, simgithub.Commit{Branch: "main", Message: "No plans", Files: map[string]string{".errand.yml": "plan: none\n"}})
	check(t, err)
	i, err := ada.OpenIssue(demo.Full, simgithub.NewIssue{Title: "Slugs end in a hyphen when the title ends in punctuation", Body: "See `Slug`."})
	check(t, err)
	check(t, ada.Assign(demo.Full, i.Number, demo.Machine))
	var task *state.Task
	until(t, "an idle task with a pull request", func() bool {
		list, err := w.Server.Store().AllTasks(t.Context(), state.TaskKey{}, 0)
		check(t, err)
		if len(list) != 1 || list[0].Phase != state.PhasePROpen || list[0].Status.Shown < list[0].Visible {
			return false
		}
		task = list[0]
		jobs, err := w.Server.Store().Jobs(t.Context(), task.Key)
		check(t, err)
		soon := time.Now().Add(time.Minute)
		return !slices.ContainsFunc(jobs, func(j state.Job) bool { return j.NotBefore.Before(soon) })
	})
	before := l.list()
	pause := time.NewTicker(60 * time.Millisecond) // polls, each of which could have sent a request
	defer pause.Stop()
	for range 50 {
		<-pause.C
	}
	for _, e := range l.list()[len(before):] {
		t.Errorf("an idle task sent %s for %s", e.kind, e.purpose)
	}
	if now, err := w.Server.Store().Task(t.Context(), task.Key); err != nil || now.Version != task.Version {
		t.Errorf("the task was not idle: version %d, then %d (%v)", task.Version, now.Version, err)
	}
}

// until waits for a condition.
func until(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	pause := time.NewTicker(20 * time.Millisecond)
	defer pause.Stop()
	for end := time.Now().Add(5 * time.Minute); !ok(); <-pause.C {
		if time.Now().After(end) {
			tb.Fatalf("timeout while waiting for %s", what)
		}
	}
}
