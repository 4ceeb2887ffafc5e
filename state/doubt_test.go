package state

import (
	"fmt"
	"testing"
	"time"
)

// TestDoubts: each effect that may be there is looked for since its first job gave up; the oldest of too many is forgotten.
func TestDoubts(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.trigger()
	give := func(key string, doubt time.Time) {
		l.do(Event{Kind: EventStepFailed, Failure: &Failure{Job: JobReact, Key: key, Doubt: doubt, Class: "github", Reason: "No."}})
	}
	give("1.a", t0.Add(2*time.Hour))
	give("1.b", t0.Add(time.Hour))
	give("1.a", t0.Add(3*time.Hour)) // gave up again
	give("1.c", time.Time{})         // known not to be there
	want := map[string]time.Time{"1.a": t0.Add(2 * time.Hour), "1.b": t0.Add(time.Hour)}
	if got := l.task.Doubts; len(got) != 2 || !got["1.a"].Equal(want["1.a"]) || !got["1.b"].Equal(want["1.b"]) {
		t.Fatalf("doubts %v, want %v", got, want)
	}
	for i := range maxDoubts - 1 {
		give(fmt.Sprintf("1.n%d", i), t0.Add(4*time.Hour))
	}
	if got := l.task.Doubts; len(got) != maxDoubts || !got["1.b"].IsZero() || got["1.a"].IsZero() {
		t.Errorf("%d doubts, a since %v, b since %v; want %d without the oldest, b", len(got), got["1.a"], got["1.b"], maxDoubts)
	}
}
