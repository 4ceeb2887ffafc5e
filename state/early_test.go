package state

import (
	"slices"
	"testing"
	"time"
)

// TestEarlyWordsOnAPullRequestAreGathered: a pull request that was looked for may have been reviewed before it was known.
func TestEarlyWordsOnAPullRequestAreGathered(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		detail string
		said   bool // something waits that no run has taken
		want   bool
	}{
		"opened just now":                       {"", false, false},
		"looked for":                            {"looked", false, true},
		"opened just now, with words that wait": {"", true, true},
		"looked for, with words that wait":      {"looked", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.toPR()
			l.task.Phase, l.task.PR, l.task.Step = PhaseImplementing, nil, JobOpenPR // the answer was lost
			if c.said {
				l.task.Feedback = []Feedback{{ID: "comment:77", Kind: "comment", By: writer, Body: "Mind this."}}
			}
			l.do(Event{Kind: EventPROpened, PR: &PR{Number: 5, State: "open"}, Detail: c.detail})
			l.want(PhasePROpen)
			if got := slices.Contains(kindsOf(l.jobs), JobGather); got != c.want {
				t.Errorf("the review is gathered: %v, want %v", got, c.want)
			}
		})
	}
}

// TestWaitingGoesOn: a task that is held up by the same again has waited since the first time, and looks less and less often; by
// something else it begins to wait anew.
func TestWaitingGoesOn(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.trigger()
	held := func(kind WaitKind, after time.Duration) Waiting {
		l.now = l.now.Add(after)
		l.do(Event{Kind: EventHeldUp, Waiting: &Waiting{Kind: kind, Detail: "not now"}})
		return *l.task.Waiting
	}
	first := held(WaitBlocked, 0)
	again := held(WaitBlocked, 20*time.Minute)
	if !again.Since.Equal(first.Since) || again.Until.Sub(l.now) <= first.Until.Sub(first.Since) {
		t.Errorf("it waits since %s, until %s from %s on; at first since %s, until %s", again.Since, again.Until, l.now, first.Since, first.Until)
	}
	if other := held(WaitConfig, time.Minute); !other.Since.Equal(l.now) {
		t.Errorf("for something else it waits since %s, now is %s", other.Since, l.now)
	}
}
