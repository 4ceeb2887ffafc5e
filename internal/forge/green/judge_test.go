package green_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/forge/green"
)

const (
	actions = 15368
	other   = 99
	quiet   = 2 * time.Minute
)

// at returns a time that long after the start of a test's day.
func at(d time.Duration) time.Time { return time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC).Add(d) }

// run returns a check run by GitHub Actions that began and ended at the start of the day.
func run(name string, s green.State, change ...func(*green.Check)) green.Check {
	c := green.Check{Name: name, App: actions, State: s, Started: at(0), Changed: at(0)}
	for _, f := range change {
		f(&c)
	}
	return c
}

func required(c *green.Check)               { c.Required = true }
func by(app int64) func(*green.Check)       { return func(c *green.Check) { c.App = app } }
func result(word string) func(*green.Check) { return func(c *green.Check) { c.Result = word } }
func in(group string) func(*green.Check)    { return func(c *green.Check) { c.Group = group } }
func on(event string) func(*green.Check)    { return func(c *green.Check) { c.Event = event } }
func id(n int64) func(*green.Check)         { return func(c *green.Check) { c.ID = n } }
func begun(d time.Duration) func(*green.Check) {
	return func(c *green.Check) { c.Started, c.Changed = at(d), at(d) }
}
func waiting(c *green.Check) { c.Started = time.Time{} }
func status(c *green.Check)  { c.App, c.Status = 0, true }
func expected(c *green.Check) {
	status(c)
	c.Expected = true
}

type requirements []green.Requirement

func TestJudge(t *testing.T) {
	t.Parallel()
	const ok, no, pending = green.Success, green.Failure, green.Pending
	long := strings.Repeat("é", 500)
	tests := map[string]struct {
		checks     []green.Check
		needs      requirements
		incomplete string
		workflows  int // that a ruleset requires
		hidden     int // checks that GitHub counts but does not list
		now        time.Duration
		want       green.State
		reason     string
		optional   string
	}{
		"nothing": {want: green.None},
		"nothing readable": {
			incomplete: "GitHub does not let errand read it", want: green.None,
		},
		"nothing listed": {hidden: 2, want: green.Unknown, reason: "GitHub did not show 2 checks, so it is not known which checks are required"},
		"nothing, but required": {
			needs: requirements{{Name: "lint"}, {Name: "build", App: actions}}, want: pending,
			reason: "2 of 2 required checks have not been reported: lint, build",
		},
		"one of two required": {
			checks: []green.Check{run("build", ok, required)}, needs: requirements{{Name: "lint"}, {Name: "build"}}, want: pending,
			reason: "1 of 2 required checks has not been reported: lint",
		},
		"required twice": {
			checks: []green.Check{run("build", ok, required)}, needs: requirements{{Name: "build"}, {Name: "build", App: actions}}, want: ok,
			reason: "the only required check succeeded",
		},
		"missing twice": {
			needs: requirements{{Name: "build"}, {Name: "build", App: actions}}, want: pending,
			reason: "1 of 1 required check has not been reported: build",
		},
		"all required": {
			checks: []green.Check{run("build", ok, required), run("lint", ok, required, begun(time.Hour))}, now: time.Hour, want: ok,
			reason: "all 2 required checks succeeded",
		},
		"required by a rule that GraphQL does not know": {
			checks: []green.Check{run("build", no), run("lint", ok)}, needs: requirements{{Name: "build"}}, want: no,
			reason: "1 of 1 required check failed: build",
		},
		"an optional one fails": {
			checks: []green.Check{run("build", ok, required), run("lint", no), run("docs", no, result("timed out"))}, want: ok,
			reason: "the only required check succeeded", optional: "docs (timed out), lint",
		},
		"an optional one runs": {
			checks: []green.Check{run("build", ok, required), run("lint", pending)}, want: ok, reason: "the only required check succeeded",
		},
		"everything at once": {
			checks: []green.Check{run("a", no, required, result("cancelled")), run("b", pending, required), run("c", ok, required), run("x", no)},
			needs:  requirements{{Name: "d"}}, want: no, optional: "x",
			reason: "1 of 4 required checks failed: a (cancelled); 1 has not been reported: d; 1 is not complete: b",
		},
		"startup failure": {
			checks: []green.Check{run("a", no, required, result("startup failure"))}, want: no,
			reason: "1 of 1 required check failed: a (startup failure)",
		},
		"the App that is required is another one": {
			checks: []green.Check{run("build", ok, by(other))}, needs: requirements{{Name: "build", App: actions}}, want: pending,
			reason: "1 of 1 required check has not been reported: build",
		},
		"the required App's check fails, another App's succeeds": {
			checks: []green.Check{run("build", ok, by(other)), run("build", no, required)}, needs: requirements{{Name: "build", App: actions}},
			want: no, reason: "1 of 1 required check failed: build",
		},
		"both Apps count": {
			checks: []green.Check{run("build", ok, by(other)), run("build", pending)}, needs: requirements{{Name: "build"}},
			want: pending, reason: "1 of 2 required checks is not complete: build",
		},
		"a status of the same name": {
			checks: []green.Check{run("build", ok), run("build", no, status)}, needs: requirements{{Name: "build"}},
			want: no, reason: "1 of 2 required checks failed: build",
		},
		"a status that only the App's ID would require": {
			checks: []green.Check{run("build", ok, status)}, needs: requirements{{Name: "build", App: other}}, want: pending,
			reason: "1 of 1 required check has not been reported: build",
		},
		"a status does not stand in for an App's check of the same name": {
			checks: []green.Check{run("build", ok, status)}, needs: requirements{{Name: "build"}, {Name: "build", App: other}}, want: pending,
			reason: "1 of 2 required checks has not been reported: build",
		},
		"a required status": {
			checks: []green.Check{run("build", ok, status, required)}, needs: requirements{{Name: "build", App: other}}, want: ok,
			reason: "the only required check succeeded",
		},
		"an expected status": {
			checks: []green.Check{run("build", ok, required), run("ci", pending, expected, required)}, want: pending,
			reason: "1 of 2 required checks has not been reported: ci",
		},
		"a run succeeds after a failed one": {
			checks: []green.Check{run("build", ok, required, begun(time.Minute)), run("build", no, required)}, want: ok,
			reason: "the only required check succeeded",
		},
		"a run fails after one that succeeded": {
			checks: []green.Check{run("build", no, required, begun(time.Minute)), run("build", ok, required)}, want: no,
			reason: "1 of 1 required check failed: build",
		},
		"a run waits after one that succeeded": {
			checks: []green.Check{run("build", pending, required, waiting), run("build", ok, required, begun(time.Hour))}, want: pending,
			reason: "1 of 1 required check is not complete: build",
		},
		"both at the same time": {
			checks: []green.Check{run("build", ok, required), run("build", no, required), run("build", pending, required)}, want: no,
			reason: "1 of 1 required check failed: build",
		},
		"an older run claims to have begun later": {
			checks: []green.Check{run("build", ok, required, id(7), begun(time.Hour)), run("build", no, required, id(8))}, want: no,
			reason: "1 of 1 required check failed: build",
		},
		"two runs in one second": {
			checks: []green.Check{run("build", pending, required, id(7), waiting), run("build", ok, required, id(8))}, want: ok,
			reason: "the only required check succeeded",
		},
		"a page is missing": {
			checks: []green.Check{run("build", ok, required)}, hidden: 100, want: green.Unknown,
			reason: "GitHub did not show 100 checks, so it is not known which checks are required",
		},
		"a page is missing, and one fails": {
			checks: []green.Check{run("build", no, required)}, hidden: 1, want: no,
			reason: "1 of 1 required check failed: build; GitHub did not show 1 check, so it is not known which checks are required",
		},
		"unreadable rules": {
			checks: []green.Check{run("build", ok)}, incomplete: "the rules are secret", now: time.Hour, want: green.Unknown,
			reason: "the rules are secret, so it is not known which checks are required",
		},
		"unreadable rules, and one runs": {
			checks: []green.Check{run("build", pending)}, incomplete: "the rules are secret", want: pending,
			reason: "1 of 1 check is not complete: build; the rules are secret, so it is not known which checks are required",
		},
		"jobs of one name in two workflows": {
			checks: []green.Check{run("build", no, in("ci"), id(10)), run("build", ok, in("release"), id(11))}, now: time.Hour, want: no,
			reason: "1 of 2 checks failed: build",
		},
		"jobs of one name in two workflows, required": {
			checks: []green.Check{run("build", pending, in("ci"), id(10)), run("build", ok, in("release"), id(11))},
			needs:  requirements{{Name: "build", App: actions}}, want: pending, reason: "1 of 2 required checks is not complete: build",
		},
		"a workflow runs again": {
			checks: []green.Check{run("build", no, in("ci"), id(10), required), run("build", ok, in("ci"), id(11), required)}, want: ok,
			reason: "the only required check succeeded",
		},
		"a workflow that a push and the pull request started": {
			checks: []green.Check{run("build", no, in("ci"), on("push"), id(10), required), run("build", ok, in("ci"), on("pull_request"), id(11), required)},
			want:   no, reason: "1 of 2 required checks failed: build",
		},
		"one of two required workflows has not begun": {
			checks: []green.Check{run("unit", ok, required, in("ci")), run("lint", ok, required, in("ci"))}, workflows: 2, now: time.Hour,
			want: green.Unknown, reason: "a ruleset requires a workflow of which GitHub shows no check yet, so it is not known which checks are required",
		},
		"two required workflows": {
			checks: []green.Check{run("unit", ok, required, in("ci")), run("lint", ok, required, in("style"))}, workflows: 2, now: time.Hour,
			want: ok, reason: "all 2 required checks succeeded",
		},
		"required workflows have not begun": {
			checks: []green.Check{run("build", ok, required), run("unit", ok)}, needs: requirements{{Name: "build"}}, workflows: 1, now: time.Hour,
			want: green.Unknown, reason: "a ruleset requires a workflow of which GitHub shows no check yet, so it is not known which checks are required",
		},
		"required workflows, too early": {
			checks: []green.Check{run("build", ok, required), run("unit", ok, required)}, needs: requirements{{Name: "build"}}, workflows: 1, want: pending,
			reason: "all 2 required checks succeeded; a ruleset requires workflows, so more may appear: the result counts once nothing has been reported for 2 min",
		},
		"required workflows": {
			checks: []green.Check{run("build", ok, required), run("unit", ok, required)}, needs: requirements{{Name: "build"}}, workflows: 1, now: quiet,
			want: ok, reason: "all 2 required checks succeeded",
		},
		"required workflows and nothing else": {workflows: 1, want: green.None},
		"required workflows, one fails": {
			checks: []green.Check{run("unit", no, required)}, workflows: 1, want: no, reason: "1 of 1 required check failed: unit",
		},
		"none required, too early": {
			checks: []green.Check{run("build", ok), run("lint", ok, begun(time.Minute))}, now: quiet + time.Minute - time.Second, want: pending,
			reason: "all 2 checks succeeded; none is required, so more may appear: the result counts once nothing has been reported for 2 min",
		},
		"none required": {
			checks: []green.Check{run("build", ok), run("lint", ok, begun(time.Minute))}, now: quiet + time.Minute, want: ok,
			reason: "all 2 checks succeeded; none is required",
		},
		"none required, one fails": {
			checks: []green.Check{run("build", ok), run("lint", no)}, now: time.Hour, want: no, reason: "1 of 2 checks failed: lint",
		},
		"none required, one runs": {
			checks: []green.Check{run("build", ok), run("lint", pending)}, now: time.Hour, want: pending, reason: "1 of 2 checks is not complete: lint",
		},
		"many with long names": {
			checks: []green.Check{run("1", no), run("2", no), run("3", no), run("4", no), run(long, no), run("ö", no), run("ü", no)}, want: no,
			reason: "7 of 7 checks failed: 1, 2, 3, 4, " + strings.Repeat("é", 79) + "… and 2 more",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := green.Report{Checks: tt.checks, Total: len(tt.checks) + tt.hidden, Required: tt.needs, Workflows: tt.workflows, Incomplete: tt.incomplete}
			for range 5 { // the order in which GitHub lists them is of no importance
				v := green.Judge(r, at(tt.now), quiet)
				if v.State != tt.want || v.Reason != tt.reason || v.Optional != tt.optional {
					t.Fatalf("got %s (%s), not required: %q\nwant %s (%s), not required: %q", v.State, v.Reason, v.Optional, tt.want, tt.reason, tt.optional)
				}
				rand.Shuffle(len(r.Checks), func(i, j int) { r.Checks[i], r.Checks[j] = r.Checks[j], r.Checks[i] })
			}
		})
	}
}

// A head that nobody has to report anything on is judged again when it has been quiet for long enough, and only then.
func TestJudgeAgain(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		check green.Check
		now   time.Duration
		want  time.Time
	}{
		"early":                {run("build", green.Success), time.Minute, at(quiet)},
		"late":                 {run("build", green.Success), quiet, time.Time{}},
		"running":              {run("build", green.Pending), time.Minute, time.Time{}},
		"failed":               {run("build", green.Failure), time.Minute, time.Time{}},
		"required":             {run("build", green.Success, required), time.Minute, time.Time{}},
		"in a hundred years":   {run("build", green.Success, begun(876000*time.Hour)), time.Minute, time.Time{}},
		"in a minute":          {run("build", green.Success, begun(time.Minute)), 0, at(time.Minute + quiet)},
		"without a known time": {green.Check{Name: "build", State: green.Success}, 0, time.Time{}},
	}
	for name, tt := range tests {
		v := green.Judge(green.Report{Checks: []green.Check{tt.check}, Total: 1}, at(tt.now), quiet)
		if !v.Again.Equal(tt.want) {
			t.Errorf("%s: got %s, want %s", name, v.Again, tt.want)
		}
	}
}

// Without a required success or a page of the list no head becomes green that was not green before.
func TestLessIsNeverGreener(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 2))
	greens := 0
	for range 20_000 {
		r, now := randomReport(rnd), at(time.Duration(rnd.IntN(600))*time.Second)
		before := green.Judge(r, now, quiet).State
		if before == green.Success {
			greens++
			continue
		}
		for i, c := range r.Checks {
			less := r
			less.Checks = slices.Delete(slices.Clone(r.Checks), i, i+1)
			if green.Judge(less, now, quiet).State == green.Success {
				t.Fatalf("became green without a line of the list\n%+v\n%+v", r, c)
			}
			if c.State != green.Success || !c.Required {
				continue
			}
			less.Total--
			if isNewest(r, c) && green.Judge(less, now, quiet).State == green.Success {
				t.Fatalf("became green without a required success\n%+v\n%+v", r, c)
			}
		}
		less := r
		less.Checks = slices.Clone(r.Checks)[:rnd.IntN(len(r.Checks)+1)]
		if len(less.Checks) < len(r.Checks) && green.Judge(less, now, quiet).State == green.Success {
			t.Fatalf("became green without a page\n%+v", r)
		}
	}
	if greens < 500 {
		t.Errorf("only %d of the reports were green", greens)
	}
}

func isNewest(r green.Report, c green.Check) bool {
	return slices.ContainsFunc(green.Newest(r.Checks), func(n green.Check) bool { return n == c })
}

func randomReport(rnd *rand.Rand) green.Report {
	var r green.Report
	for range rnd.IntN(5) {
		c := run(fmt.Sprint(rnd.IntN(3)), []green.State{green.Success, green.Success, green.Success, green.Pending, green.Failure}[rnd.IntN(5)],
			by(int64(rnd.IntN(2))), begun(time.Duration(rnd.IntN(600))*time.Second))
		c.Required = rnd.IntN(2) == 0
		c.Status = rnd.IntN(4) == 0
		c.Group = fmt.Sprint(rnd.IntN(2))
		r.Checks = append(r.Checks, c)
	}
	r.Total = len(r.Checks)
	for range rnd.IntN(2) {
		r.Required = append(r.Required, green.Requirement{Name: fmt.Sprint(rnd.IntN(3)), App: int64(rnd.IntN(2))})
	}
	if rnd.IntN(8) == 0 {
		r.Incomplete = "secret"
	}
	return r
}
