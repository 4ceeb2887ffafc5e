package comment

import (
	"regexp"
	"testing"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/settings"
)

// public makes the repository of a task public.
func public(change func(*state.Task)) func(*state.Task) {
	return func(t *state.Task) {
		change(t)
		t.Repo.Private = false
	}
}

// Amounts are shown in private repositories, unless the settings say otherwise; in others, no comment names any.
func TestMoneyIsShownByVisibility(t *testing.T) {
	t.Parallel()
	amount := regexp.MustCompile("[$€]\\d|\\d[\\d,.]*k? tokens|\\| (?:Cost|Tokens) \\||EUR")
	command := regexp.MustCompile("`@errand budget [^`]*`")
	tasks := map[string]said{}
	for name, s := range everything() {
		tasks["post/"+name] = s
	}
	for name, task := range statuses() {
		tasks["status/"+name] = said{task: task}
	}
	shown := 0
	for name, s := range tasks {
		for mode, c := range map[settings.MoneyMode]map[bool]bool{
			"": {true: true, false: false}, settings.MoneyPrivate: {true: true, false: false},
			settings.MoneyAlways: {true: true, false: true}, settings.MoneyNever: {true: false, false: false},
		} {
			for private, want := range c {
				task := s.task.Clone()
				task.Repo.Private, task.Settings.Comments.Money = private, mode
				text := Status(task, view("k"))
				if s.post.Kind != "" {
					text = Render(task, s.post, view("k"))
				}
				found := amount.FindString(command.ReplaceAllString(text, ""))
				if found != "" && !want {
					t.Errorf("%s, money %q, private %v: found %q in:\n%s", name, mode, private, found, text)
				} else if found != "" {
					shown++
				}
			}
		}
	}
	if shown < 50 {
		t.Errorf("amounts are shown %d times only", shown)
	}
}

// Every sentence about a cap keeps its meaning without the amounts.
func TestAmountsAreLeftOut(t *testing.T) {
	t.Parallel()
	spent := func(micro, most int64) state.Money { return state.Money{MicroUSD: micro, CapMicroUSD: most} }
	task := func(m state.Money) *state.Task { return &state.Task{Money: m} }
	run := func(m state.Money, l settings.Limits) *state.Task {
		return &state.Task{TaskRuns: state.TaskRuns{Run: &state.Run{RunUsage: state.RunUsage{Money: m}}}, TaskIssue: state.TaskIssue{Settings: settings.Settings{Limits: l}}}
	}
	for name, c := range map[string]struct {
		task *state.Task
		need state.Money
		want string
		hint string
	}{
		"dollars":    {task(spent(10_020_000, 10_000_000)), state.Money{}, "The task's cap is reached.", "Comment `budget +5` to raise the cap and continue."},
		"tokens":     {task(state.Money{InputTokens: 512_345, CapTokens: 500_000}), state.Money{}, "The task's cap is reached.", "Comment `budget +500k tokens` to raise the cap and continue."},
		"a run":      {run(spent(1_020_000, 0), settings.Limits{RunMicroUSD: 1_000_000}), state.Money{}, "The cap for one run is reached.", state.HintRunCap},
		"its tokens": {run(state.Money{InputTokens: 1_001}, settings.Limits{RunTokens: 1_000}), state.Money{}, "The cap for one run is reached.", state.HintRunCap},
		"too little": {task(spent(985_000, 1_000_000)), spent(40_000, 0), "The cap for the task leaves too little for another answer.", "Comment `budget +5` to raise the cap and continue."},
		"few tokens": {task(state.Money{InputTokens: 999_000, CapTokens: 1_000_000}), state.Money{OutputTokens: 4_096}, "The cap for the task leaves too little for another answer.", "Comment `budget +500k tokens` to raise the cap and continue."},
		"of one run": {run(spent(985_000, 0), settings.Limits{RunMicroUSD: 1_000_000}), spent(40_123, 0), "The cap for one run leaves too little for another answer.", state.HintRunCap},
	} {
		w := c.task.Capped(state.Money{}, state.Money{}, c.need, false)
		if w == nil {
			t.Fatalf("%s: no cap is reached", name)
		}
		if got, hint := amounts(c.task, w.Detail), amounts(c.task, w.Hint); got != c.want || hint != c.hint {
			t.Errorf("%s: %q became %q, %q", name, w.Detail, got, hint)
		}
	}
	hidden := &state.Task{}
	for from, want := range map[string]string{
		"this month's cap of $500.00 for all tasks together is reached; a new month begins at 1 Dec 00:00 UTC": "this month's cap for all tasks together is reached; a new month begins at 1 Dec 00:00 UTC",
		"VMs and images have cost 4.99 EUR today; the limit is 5.00 EUR":                                       "the limit for the cost of VMs and images today is reached",
		"VMs and images have cost 49.90 USD this month; the limit is 50.00 USD.":                               "the limit for the cost of VMs and images this month is reached.",
		"the setup command `echo $1` failed":                                                                   "the setup command `echo $1` failed",
		"Something about a cap of sorts, namely $12,000.50, and so on":                                         "Something about a cap of sorts, namely an amount, and so on",
	} {
		if got := amounts(hidden, from); got != want {
			t.Errorf("%q became %q", from, got)
		}
	}
}
