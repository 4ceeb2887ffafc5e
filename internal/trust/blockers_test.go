package trust

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBlockers(t *testing.T) {
	t.Parallel()
	home := IssueRef{"acme", "widget", 7}
	own := func(numbers ...int) []IssueRef {
		var refs []IssueRef
		for _, n := range numbers {
			refs = append(refs, IssueRef{"acme", "widget", n})
		}
		return refs
	}
	tests := map[string]struct {
		text string
		want []IssueRef
	}{
		"none":                 {text: "See #5."},
		"one":                  {"This is blocked by #5.", own(5)},
		"case and colon":       {"Blocked by: #5", own(5)},
		"depends on elsewhere": {"Depends on other/repo.go#12, please", []IssueRef{{"other", "repo.go", 12}}},
		"an address":           {"depends upon https://github.com/other/repo/issues/3", []IssueRef{{"other", "repo", 3}}},
		"an address in <>":     {"waits for <https://github.com/other/repo/pull/3>", []IssueRef{{"other", "repo", 3}}},
		"a list in words":      {"blocked by #1, #2 and other/repo#3 but not #4", append(own(1, 2), IssueRef{"other", "repo", 3})},
		"without commas":       {"blocked on #1 #2", own(1, 2)},
		"twice":                {"blocked by #1, #1. Depends on #1", own(1)},
		"itself":               {"blocked by #7, ACME/widget#7, #8", own(8)},
		"a list":               {"Depends on:\n\n- #1 the first\n- #2\n- other/repo#3, then\n\nAnd #4.", append(own(1, 2), IssueRef{"other", "repo", 3})},
		"lines after a colon":  {"Depends on:\n#1\n#2\n", own(1, 2)},
		"no colon, no list":    {text: "It depends on\n\n- #1\n"},
		"over a line break":    {"It depends\non\n#1.", own(1)},
		"in bold":              {"**Blocked by** #1", own(1)},
		"in a heading":         {"## Blocked by #1", own(1)},
		"two places":           {"blocked by #1\n\nblocked by #2", own(1, 2)},
		"not":                  {text: "This is not blocked by #5 and no longer depends on #6, was blocked by #8."},
		"isn't":                {text: "isn't blocked by #5"},
		"struck through":       {text: "~~blocked by #5~~"},
		"struck reference":     {text: "blocked by ~~#5~~"},
		"in code":              {text: "`blocked by #5`"},
		"the number in code":   {text: "blocked by `#5`"},
		"fenced":               {text: "```\nblocked by #5\n```"},
		"indented":             {text: "    blocked by #5"},
		"quoted":               {text: "> blocked by #5"},
		"in HTML":              {text: "<!-- blocked by #5 -->\n\n<div>\nblocked by #6\n</div>"},
		"another word":         {text: "unblocked by #5; dependson #6"},
		"other words between":  {text: "blocked by the weather, see #5"},
		"no number":            {text: "blocked by #, #0, #x, #05"},
		"a long number":        {text: "blocked by #99999999999999999999"},
		"part of a word":       {text: "blocked by #5a"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, Blockers(tc.text, home)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestBlockersAreBounded(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	text.WriteString("blocked by #1")
	for i := range 500 {
		text.WriteString(", a/b#" + strings.Repeat("1", 1+i%8) + string(rune('1'+i%9)))
	}
	if got := len(Blockers(text.String(), IssueRef{})); got != maxBlockers {
		t.Errorf("%d blockers, want %d", got, maxBlockers)
	}
}

func FuzzBlockers(f *testing.F) {
	f.Add("blocked by #1, other/repo#2 and https://github.com/a/b/issues/3\n- #4")
	f.Add("Depends on:\n\n- [ ] #1\n> depends on #2\n")
	f.Fuzz(func(t *testing.T, text string) {
		home := IssueRef{"acme", "widget", 7}
		for _, ref := range Blockers(text, home) {
			if ref.Number < 1 || ref.Owner == "" || ref.Name == "" || ref == home {
				t.Errorf("reference %+v", ref)
			}
			if strings.ContainsAny(ref.Owner+ref.Name, " /\n#") {
				t.Errorf("reference %+v", ref)
			}
		}
	})
}
