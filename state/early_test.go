package state

import (
	"slices"
	"testing"
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
