package machine

import (
	"encoding/hex"
	"fmt"
	"testing"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// planWithHashPrefix makes the text of a revision whose hash begins with the given digits, like an attacker could. Use few digits.
func planWithHashPrefix(t *testing.T, p state.Plan, digits string) string {
	t.Helper()
	for i := range 1 << 24 {
		p.Text = fmt.Sprintf("Do it another way. %d", i)
		if state.PlanHash(p)[:len(digits)] == digits {
			return p.Text
		}
	}
	t.Fatal("got no matching text")
	return ""
}

// No two revisions in all lives of a task share the digits that people see and may write.
func TestShortHashesAreUnique(t *testing.T) {
	t.Parallel()
	base := state.Plan{Kind: state.PlanPreliminary, Revision: 2, Text: "Do it.", BaseSHA: "b0", IssueHash: "i0"}
	first := state.PlanHash(base)
	for name, task := range map[string]*state.Task{
		"a revision of this life":   {TaskPlans: state.TaskPlans{Plans: []state.Plan{{Hash: first}}}},
		"one that an older version": {TaskPlans: state.TaskPlans{Plans: []state.Plan{{Hash: first[:8]}}}},
		"one of an earlier life":    {TaskPlans: state.TaskPlans{UsedHashes: []string{first[:8]}}},
		"by seven digits":           {TaskPlans: state.TaskPlans{Plans: []state.Plan{{Hash: first[:7] + "0000"}}, UsedHashes: []string{first[:7] + "f"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, again, p, q := &change{t: task}, &change{t: task.Clone()}, base, base
			assignHash(c, &p)
			assignHash(again, &q)
			if p.Hash[:7] == first[:7] || p.Salt == 0 || !p.Intact() || len(p.Hash) != 64 {
				t.Errorf("got hash %s after %s, salt %d", p.Hash, first, p.Salt)
			}
			if p.Hash != q.Hash {
				t.Errorf("got hash %s, then %s; want equal ones", p.Hash, q.Hash)
			}
		})
	}
	c, p := &change{t: &state.Task{TaskPlans: state.TaskPlans{Plans: []state.Plan{{Hash: "0123456789"}}}}}, base
	if assignHash(c, &p); p.Hash != first || p.Salt != 0 {
		t.Errorf("unique revision: got hash %s, salt %d; want no salt", p.Hash, p.Salt)
	}
}

// A plan whose hash begins like that of the approved one is a different plan.
func TestApprovalRequiresTheWholeHash(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.toPreliminary()
	p := l.task.NewestPlan()
	if raw, err := hex.DecodeString(p.Hash); err != nil || len(raw) != 32 {
		t.Fatalf("got hash %q", p.Hash)
	}
	evil := *p
	evil.Text = planWithHashPrefix(t, evil, p.Hash[:4])
	forged := p.Hash[:63] + string("01"[p.Hash[63]&1])
	if forged == p.Hash {
		forged = p.Hash[:63] + "x"
	}
	for name, c := range map[string]struct {
		hash   string
		counts bool
	}{
		"its own":                {p.Hash, true},
		"a prefix":               {p.Short(), false},
		"alike but for a digit":  {forged, false},
		"that of a similar plan": {state.PlanHash(evil), false},
		"none":                   {"", false},
	} {
		task := l.task.Clone()
		ch := Next(task, event.Event{Task: state.TaskKey{Repo: 7, Issue: 1}, Now: l.now, By: writer, Permission: state.PermissionWrite, Payload: event.Approved{Candidate: state.Candidate{Approval: state.Approval{Kind: p.Kind, Hash: c.hash, By: writer, Permission: state.PermissionWrite, Via: state.ViaReaction, Given: l.now}}}}, DefaultPolicy())
		if got := ch.Task.Phase == state.PhasePlanning; got != c.counts {
			t.Errorf("%s: counts %v", name, got)
		}
	}
	for named, want := range map[string]bool{p.Hash: true, p.Short(): true, p.Hash[:7]: true, p.Hash[:40]: true, p.Hash[:6]: false, forged: false, p.Short() + "00000000": false} {
		if hashMatches(named, p.Hash) != want {
			t.Errorf("%s: got a match %v, want %v", named, !want, want)
		}
	}
	for named, want := range map[string]bool{p.Hash[:8]: true, p.Hash[:7]: true, "0000000": false} { // a plan that waited when errand was updated
		if hashMatches(named, p.Hash[:8]) != want {
			t.Errorf("%s: got a match with an old revision %v, want %v", named, !want, want)
		}
	}
}

// A waiting plan with a hash of eight digits can be approved; if two have the same hash, the newest counts.
func TestShortStoredHashesCanBeApproved(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.toPreliminary()
	p := l.task.NewestPlan()
	p.Hash = p.Hash[:8]
	older := *p
	older.Text, older.Superseded = "Something else.", true
	l.task.Plans = []state.Plan{older, *p}
	if got := l.task.PlanByHash(p.Hash); got.Text != p.Text || !got.Intact() {
		t.Errorf("got %+v", got)
	}
	l.approve()
	l.want(state.PhasePlanning, state.JobLaunch)
	if l.task.Approval.Hash != p.Hash {
		t.Errorf("got approved hash %s", l.task.Approval.Hash)
	}
	l.launch()
	l.end(state.RunResult{Text: "Steps.", Outcome: "build"})
	if n := l.task.NewestPlan(); len(n.Hash) != 64 || n.Short() == p.Hash {
		t.Errorf("got next hash %s", n.Hash)
	}
}

// The next life of a task knows the names of earlier revisions.
func TestHashesOfEarlierLivesAreKept(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	var want []string
	for range 3 {
		l.toPreliminary()
		want = append(want, l.task.NewestPlan().Short())
		l.comment(state.VerbCancel)
	}
	l.trigger()
	if fmt.Sprint(l.task.UsedHashes) != fmt.Sprint(want) {
		t.Errorf("got hashes %v, want %v", l.task.UsedHashes, want)
	}
}
