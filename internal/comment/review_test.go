package comment

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/errand-bot/errand/state"
)

func TestReviewBody(t *testing.T) {
	t.Parallel()
	const sha = "0123456789abcdef0123456789abcdef01234567"
	changed := AnsweredThread{Path: "calc.go", Line: 7, Top: 41, Result: ThreadChanged, Commit: sha}
	tests := map[string]ReviewInput{
		"all": {Summary: "`Div` returns `ErrZero`.", Threads: []AnsweredThread{changed}},
		"mixed": {
			Summary: "Two things.\n\nFixes #1, thanks @octocat. - [ ] x",
			Threads: []AnsweredThread{
				changed, {Path: "a`b|c.go", Top: 42, Result: ThreadAnswered}, {Path: "calc_test.go", Line: 1, Top: 43, Result: ThreadQuestion},
				{Path: "calc.go", Line: 9, Top: 44, Result: ThreadQuestion}, {Path: "calc.go", Line: 12, Top: 45, Result: ThreadUnanswered},
			},
			Others: []OtherAnswer{
				{state.Feedback{ID: "comment:51", OnPR: true}, "Documented, @bob."}, {state.Feedback{ID: "comment:52"}, "<!-- errand:k -->"}, {state.Feedback{ID: "review:53", OnPR: true}, "Split\nup."},
				{state.Feedback{ID: "thread:PRRT_x", Thread: 46}, "The thread is gone."}, {state.Feedback{ID: "ci"}, "Without an address."},
			},
		},
		"no_summary": {Threads: []AnsweredThread{{Path: "calc.go", Line: 7, Top: 41, Result: ThreadUnanswered}}},
	}
	for name, in := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden(t, "review/"+name, ReviewBody(with(prOpen), in, view("review")))
		})
	}
}

// TestReviewBodyIsWithinTheLimit: long texts and many threads are cut, and the count is that of all threads.
func TestReviewBodyIsWithinTheLimit(t *testing.T) {
	t.Parallel()
	in := ReviewInput{Summary: strings.Repeat("summary 🦫\n", 30_000)}
	for range 2000 {
		in.Threads = append(in.Threads, AnsweredThread{Path: strings.Repeat("p/", 2000), Line: 1, Top: 1 << 60, Result: ThreadAnswered})
		in.Others = append(in.Others, OtherAnswer{state.Feedback{ID: "comment:1"}, strings.Repeat("item ", 20_000)})
	}
	got := ReviewBody(with(prOpen), in, view("k"))
	if n := utf8.RuneCountInString(got); n > MaxLength {
		t.Errorf("got %d characters", n)
	}
	for _, want := range []string{"**2000 of 2000 addressed.**", "and 1900 more", "more characters"} {
		if !strings.Contains(got, want) {
			t.Errorf("the text does not contain %q", want)
		}
	}
	checkComment(t, got)
}

// FuzzReviewBody: whatever the agent and the repository's paths contain, the text is safe.
func FuzzReviewBody(f *testing.F) {
	f.Add("# x\n```\n", "a`b.go", "@octocat <!--")
	f.Add("[a]: https://x.org\n[a]", "a\n- [x] b", "closes #1")
	f.Fuzz(func(t *testing.T, summary, path, item string) {
		if len(summary)+len(path)+len(item) > 6000 {
			return
		}
		in := ReviewInput{Summary: summary, Others: []OtherAnswer{{state.Feedback{ID: "comment:" + item}, item}, {state.Feedback{ID: summary}, summary}}, Threads: []AnsweredThread{
			{Path: path, Line: 3, Top: 1, Result: ThreadChanged, Commit: item}, {Path: path, Top: 2, Result: ThreadQuestion},
		}}
		task := with(func(t *state.Task) { prOpen(t) })
		got := ReviewBody(task, in, view("k"))
		if again := ReviewBody(task, in, view("k")); again != got {
			t.Errorf("rendered again, the text is\n%s\nnot\n%s", again, got)
		}
		checkComment(t, got)
	})
}
