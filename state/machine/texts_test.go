package machine

import (
	"strings"
	"testing"

	"github.com/errand-bot/errand/state"
)

// TestCutText: texts are cut between characters, once, and only if that makes them shorter.
func TestCutText(t *testing.T) {
	t.Parallel()
	x := strings.Repeat("x", 100)
	for name, c := range map[string]struct {
		in, want string
		most     int
	}{
		"short":              {"abc", "abc", 3},
		"long":               {"abc" + x, "abc" + cutMarker, 3},
		"hardly too long":    {"abcde", "abcde", 3},
		"cut before":         {"abc" + cutMarker, "abc" + cutMarker, 3},
		"cut before, longer": {x + cutMarker, "xxx" + cutMarker, 3},
		"wide characters":    {"äöü€😀" + x, "äöü€😀" + cutMarker, 5},
		"not UTF-8":          {"\xff\xfe" + x, "\xff\xfe" + cutMarker, 2},
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

// TestConditionsAreNotCut: conditions of an approval reach the agent in full, even in a long discussion.
func TestConditionsAreNotCut(t *testing.T) {
	t.Parallel()
	with := strings.Repeat("x", 60_000)
	task := &state.Task{TaskPlans: state.TaskPlans{Feedback: []state.Feedback{{Kind: "condition", Body: with}}}}
	for range 100 {
		task.Feedback = append(task.Feedback, state.Feedback{Kind: "comment", Body: with})
	}
	boundTexts(task)
	if task.Feedback[0].Body != with || len(task.Feedback) != 101 {
		t.Errorf("%d characters: got %d, and %d texts", len(with), len(task.Feedback[0].Body), len(task.Feedback))
	}
}
