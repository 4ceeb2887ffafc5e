package green

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/errand-bot/errand/internal/words"
)

// Verdict is the decision about a head.
type Verdict struct {
	State State
	// Reason says why, as a clause for people; empty for [None]. It contains names of checks, which are other people's text.
	Reason string
	// Optional lists the checks that fail but are not required; empty if there are none.
	Optional string
	// Failing are the newest checks that fail, required or not, by name.
	Failing []Check
	// Failed are those of them that count, and Settled is set if there are some and no check that counts runs any more.
	Failed  []Check
	Settled bool
	// Pending are the checks that count and are not complete, or have not been reported. Of the latter only the name may be known.
	Pending []Check
	// Unstarted is set if checks that count have not been reported, or there are none, and none of the others runs or has failed.
	Unstarted bool
	// Again is the time at which the checks are worth another look although nothing has been reported since; zero if there is none.
	Again time.Time
}

// Judge decides whether a head is green: every required check succeeded. If none is required, all checks count, and the head is green
// when all have succeeded and none was added or completed for the time quiet, because a check that nobody requires can still appear. So
// can one of a workflow that is required.
func Judge(r Report, now time.Time, quiet time.Duration) Verdict {
	t := sort(r, now.Add(quiet))
	v := Verdict{Failing: t.failing, Optional: list(t.optional), Failed: t.broken, Pending: t.pending, Settled: len(t.broken) > 0 && len(t.running) == 0}
	incomplete := r.Incomplete
	if gap := r.Total - len(r.Checks); gap > 0 && incomplete == "" {
		incomplete = fmt.Sprintf("GitHub did not show %s", words.Many(gap, "check"))
	}
	if len(t.workflows) < r.Workflows && incomplete == "" {
		incomplete = "a ruleset requires a workflow of which GitHub shows no check yet"
	}
	v.Reason = t.reason(incomplete)
	isMissing := len(t.missing) > 0 || len(t.workflows) < r.Workflows || t.counting == 0
	v.Unstarted = isMissing && len(t.failed) == 0 && len(t.running) == 0
	switch {
	case t.counting == 0 && incomplete == "":
		v.State, v.Reason = None, ""
	case len(t.failed) > 0:
		v.State = Failure
	case len(t.missing)+len(t.running) > 0:
		v.State = Pending
	case incomplete != "":
		v.State = Unknown
		if len(r.Checks) == 0 && r.Total == 0 {
			v.State, v.Reason = None, ""
		}
	case t.required && r.Workflows == 0:
		v.State, v.Reason = Success, t.all("succeeded")
	case now.Before(t.changed.Add(quiet)):
		v.State, v.Again = Pending, t.changed.Add(quiet)
		v.Reason = t.all("succeeded")
		if r.Workflows > 0 {
			v.Reason += "; a ruleset requires workflows"
		}
		v.Reason += ", so more may appear: the result counts once nothing has been reported for " + words.Span(quiet)
	default:
		v.State, v.Reason = Success, t.all("succeeded")
	}
	return v
}

// tally has the checks of a report, each in the list that it belongs to.
type tally struct {
	required bool // some checks are required, and only these count
	counting int  // checks that count, also those that are not reported yet

	workflows map[string]bool // groups of checks that GitHub requires, although no requirement names them

	failed, running, missing []string // of those that count
	optional                 []string // not required, but failing
	failing                  []Check
	broken                   []Check   // the failing ones that count
	pending                  []Check   // the running and missing ones
	changed                  time.Time // the latest of all that is possible
}

// sort ignores times after the limit: the Apps of checks choose them.
func sort(r Report, limit time.Time) tally {
	checks := Newest(r.Checks)
	t := tally{required: len(r.Required) > 0 || slices.ContainsFunc(checks, r.Requires), workflows: map[string]bool{}}
	for _, c := range checks {
		if c.Changed.After(t.changed) && !c.Changed.After(limit) {
			t.changed = c.Changed
		}
		if c.State == Failure {
			t.failing = append(t.failing, c)
		}
		if c.Required && !r.names(c) {
			t.workflows[c.Group] = true
		}
		t.add(c, !t.required || r.Requires(c))
	}
	for _, q := range r.Required {
		if !slices.ContainsFunc(checks, q.IsMetBy) && !slices.Contains(t.missing, q.Name) {
			t.counting++
			t.missing = append(t.missing, q.Name)
			t.pending = append(t.pending, Check{Name: q.Name, App: q.App, State: Pending, Expected: true})
		}
	}
	return t
}

// add adds a check, which counts or not.
func (t *tally) add(c Check, counts bool) {
	name := c.Name
	if c.State == Failure && c.Result != "" && c.Result != "failure" && c.Result != "error" {
		name += " (" + c.Result + ")"
	}
	if !counts {
		if c.State == Failure {
			t.optional = append(t.optional, name)
		}
		return
	}
	t.counting++
	if c.Expected || c.State == Pending {
		t.pending = append(t.pending, c)
	}
	switch {
	case c.Expected:
		t.missing = append(t.missing, name)
	case c.State == Failure:
		t.failed = append(t.failed, name)
		t.broken = append(t.broken, c)
	case c.State == Pending:
		t.running = append(t.running, name)
	}
}

// reason says what keeps the head from being green, empty if nothing does. The first part has the number of all checks that count.
func (t *tally) reason(incomplete string) string {
	var parts []string
	add := func(names []string, one, many string) {
		if len(names) == 0 {
			return
		}
		verb := many
		if len(names) == 1 {
			verb = one
		}
		of := fmt.Sprint(len(names))
		if len(parts) == 0 {
			of += " of " + t.those()
		}
		parts = append(parts, of+" "+verb+": "+list(names))
	}
	add(t.failed, "failed", "failed")
	add(t.missing, "has not been reported", "have not been reported")
	add(t.running, "is not complete", "are not complete")
	if incomplete != "" {
		parts = append(parts, incomplete+", so it is not known which checks are required")
	}
	return strings.Join(parts, "; ")
}

// those names the checks that count: "3 required checks".
func (t *tally) those() string {
	if t.required {
		return words.Many(t.counting, "required check")
	}
	return words.Many(t.counting, "check")
}

// all says something about all checks that count.
func (t *tally) all(verb string) string {
	s := "all " + t.those() + " " + verb
	if t.counting == 1 {
		s = "the only " + strings.TrimPrefix(t.those(), "1 ") + " " + verb
	}
	if !t.required {
		s += "; none is required"
	}
	return s
}

// The limits of names in a list.
const (
	maxNames = 5
	maxName  = 80
)

// list returns names, separated by commas.
func list(names []string) string {
	var out []string
	for i, n := range names {
		if i == maxNames {
			return strings.Join(out, ", ") + fmt.Sprintf(" and %d more", len(names)-i)
		}
		out = append(out, cut(n))
	}
	return strings.Join(out, ", ")
}

func cut(name string) string {
	if utf8.RuneCountInString(name) <= maxName {
		return name
	}
	return string([]rune(name)[:maxName-1]) + "…"
}
