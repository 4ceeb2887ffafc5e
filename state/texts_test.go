package state

import (
	"strings"
	"testing"
	"time"
)

// TestFloodOfWordsFits: whatever people write while a task waits, is started or is planned, the store can take it, the newest words
// are whole, and that older ones were cut is said.
func TestFloodOfWordsFits(t *testing.T) {
	t.Parallel()
	const comments, listed, length = 50, 600, 60_000
	all := noise(comments * length)
	body := func(i, n int) string { return all[i*len(all)/n : (i+1)*len(all)/n] }
	last := "The last word."
	for name, started := range map[string]bool{"while it is queued": false, "while it is planned": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTestStore(t)
			s.next = Next
			apply := func(e Event) *Task {
				t.Helper()
				s.advance(time.Second)
				e.Task, e.At = task1, s.time()
				return s.mustApply(t, e, Ack{}).Task
			}
			say := func(id int, text string) *Task {
				t.Helper()
				return apply(Event{Kind: EventCommented, By: writer, Permission: PermissionWrite, ID: commentID(int64(id)), Comment: &Comment{ID: int64(id), Body: text, At: s.time()}})
			}
			start := &Start{Settings: DefaultSettings(), Visible: true, Branch: Branch{Name: "b", Base: "main", BaseSHA: "b0"}, ReadAt: s.time()}
			apply(Event{Kind: EventTriggered, By: writer, Permission: PermissionWrite, Via: "assigned", Repo: &Repo{ID: 7, Owner: "o", Name: "r"}, Issue: &Issue{Title: "Bug", Body: "It breaks."}})
			if started {
				apply(Event{Kind: EventStarted, Start: start})
			}
			for i := range comments {
				say(i+1, body(i, comments))
			}
			task := say(listed+1, last)
			if got := task.Feedback[len(task.Feedback)-1].Body; got != last {
				t.Errorf("the last word is kept as %q", got)
			}
			if first := task.Feedback[0].Body; len(task.Feedback) != comments+1 || !strings.HasSuffix(first, restOnGitHub) {
				t.Errorf("%d are kept, the first as %q", len(task.Feedback), first)
			}
			for i := range listed {
				start.Context.Comments = append(start.Context.Comments, Said{ID: int64(i + 1), By: writer, At: s.time(), Body: body(i, listed)})
			}
			start.ReadAt = s.time()
			if !started {
				task = apply(Event{Kind: EventStarted, Start: start})
				if n := len(task.Context.Comments); n != maxComments || len(task.Feedback) != 1 {
					t.Errorf("%d comments are in the discussion, and %d are to be answered", n, len(task.Feedback))
				}
			}
		})
	}
}

// TestCutText: texts are cut between characters, once, and only if that makes them shorter.
func TestCutText(t *testing.T) {
	t.Parallel()
	x := strings.Repeat("x", 100)
	for name, c := range map[string]struct {
		in, want string
		most     int
	}{
		"short":              {"abc", "abc", 3},
		"long":               {"abc" + x, "abc" + restOnGitHub, 3},
		"hardly too long":    {"abcde", "abcde", 3},
		"cut before":         {"abc" + restOnGitHub, "abc" + restOnGitHub, 3},
		"cut before, longer": {x + restOnGitHub, "xxx" + restOnGitHub, 3},
		"wide characters":    {"äöü€😀" + x, "äöü€😀" + restOnGitHub, 5},
		"not UTF-8":          {"\xff\xfe" + x, "\xff\xfe" + restOnGitHub, 2},
		"empty":              {"", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := cutText(c.in, c.most); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestConditionsAreNotCut: they are carried out word for word, however much is said besides.
func TestConditionsAreNotCut(t *testing.T) {
	t.Parallel()
	with := strings.Repeat("x", 60_000)
	task := &Task{Feedback: []Feedback{{Kind: "condition", Body: with}}}
	for range 100 {
		task.Feedback = append(task.Feedback, Feedback{Kind: "comment", Body: with})
	}
	task.boundTexts()
	if task.Feedback[0].Body != with || len(task.Feedback) != 101 {
		t.Errorf("of %d characters %d are left, and %d texts", len(with), len(task.Feedback[0].Body), len(task.Feedback))
	}
}
