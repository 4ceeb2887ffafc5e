package comment

import (
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/comment/markdown"
	"github.com/errand-bot/errand/state"
)

func TestBoxTicked(t *testing.T) {
	t.Parallel()
	task := planned()
	body := Render(task, state.Post{Kind: state.PostPlan, Hash: task.Plans[0].Hash}, view("k"))
	tick := func(s string, n int) string {
		line := strings.Split(ApproachBox(task.Plans[0].Hash, n, task.Plans[0].Approaches[n-1]), "\n")[0]
		return strings.Replace(s, line, strings.Replace(line, "[ ]", "[x]", 1), 1)
	}
	simple := Render(task, state.Post{Kind: state.PostPlan, Hash: task.Plans[2].Hash}, view("k"))
	tests := map[string]struct {
		before, after   string
		onlyBox, ticked bool
		choice          int
	}{
		"plain":               {simple, strings.Replace(simple, "- [ ] **A", "- [x] **A", 1), true, true, 0},
		"first approach":      {body, tick(body, 1), true, true, 1},
		"second approach":     {body, tick(body, 2), true, true, 2},
		"both at once":        {body, tick(tick(body, 1), 2), true, false, 0},
		"changed the choice":  {tick(body, 1), tick(body, 2), true, true, 2},
		"unticked":            {tick(body, 1), body, true, false, 0},
		"line ends":           {body, strings.ReplaceAll(tick(body, 2), "\n", "\r\n"), true, true, 2},
		"nothing":             {body, body, false, false, 0},
		"only line ends":      {body, strings.ReplaceAll(body, "\n", "\r\n"), false, false, 0},
		"an edit":             {body, strings.Replace(body, "Understood", "Misunderstood", 1), false, false, 0},
		"an edit with a tick": {body, tick(strings.Replace(body, "Understood", "Misunderstood", 1), 1), false, false, 0},
		"an edit of the box":  {simple, strings.Replace(simple, "[ ] **Approve this plan**", "[x] **Approve that plan**", 1), false, false, 0},
		"a box of another":    {"- [ ] x\n\n" + body, "- [x] x\n\n" + body, true, false, 0},
		"a box as text":       {body, strings.Replace(body, "<!-- errand:box", "<!-- box", 1), false, false, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onlyBox, ticked, box := BoxTicked(tt.before, tt.after)
			if onlyBox != tt.onlyBox || ticked != tt.ticked || box.Choice != tt.choice {
				t.Errorf("got %v %v %d, want %v %v %d", onlyBox, ticked, box.Choice, tt.onlyBox, tt.ticked, tt.choice)
			}
			of := map[int]string{0: task.Plans[2].Short(), 1: task.Plans[0].Short(), 2: task.Plans[0].Short()}[tt.choice]
			if ticked && box.Hash != of {
				t.Errorf("the box approves %q, want %q", box.Hash, of)
			}
			if Untick(tick(body, 1)) != body {
				t.Error("Untick does not restore the body")
			}
		})
	}
}

func TestBoxInForeignTextDoesNotCount(t *testing.T) {
	t.Parallel()
	forged := ApprovalBox("a1b2c3d4")
	for _, text := range []string{forged, "```\n" + forged + "\n```", "    " + forged, "x\n" + forged, "<details>\n\n" + forged, "`\n" + forged + "\n`"} {
		if got := markdown.Embed(text); len(boxes(got)) > 0 || len(boxes(strings.Replace(got, "[ ]", "[x]", 1))) > 0 {
			t.Errorf("Embed(%q) = %q has a box", text, got)
		}
		if _, ok := FindMarker(markdown.Embed(text + "\n" + Marker("k"))); ok {
			t.Errorf("marker in %q", text)
		}
	}
}

func TestMarker(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, key := range []string{"plan-a1", "plan--a1", "a-->b", "a%2Db", "a b", "ö", "-", "--", "---", "a-", ""} {
		m := Marker(key)
		if strings.Count(m, "--") != 2 || seen[m] {
			t.Errorf("Marker(%q) = %q", key, m)
		}
		seen[m] = true
		got, ok := FindMarker("text " + Marker("other") + "\n\n" + m + "\n")
		if !ok || got != key {
			t.Errorf("FindMarker(%q) = %q, %v", m, got, ok)
		}
	}
	if _, ok := FindMarker(Marker("x") + "\nmore"); ok {
		t.Error("a marker that is not at the end counts")
	}
}
