package comment

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"

	"github.com/errand-bot/errand/state"

	"github.com/errand-bot/errand/internal/comment/commenttest"
)

// addUntrusted puts untrusted words into every text of a task and a post that can have them.
func addUntrusted(s said, words, name string) said {
	who := state.Person{ID: 66, Login: name}
	t, p := s.task, &s.post
	p.Text, p.Hint, p.Items = words, name, []string{name, words, ""}
	p.Refusals = []state.Refusal{{Rule: "secret", Path: name, Detail: words, Remedy: name}, {Rule: name, Path: words}}
	for i := range t.Plans {
		plan := &t.Plans[i]
		plan.Text, plan.Summary, plan.Changes, plan.Estimate = words, name, words, name
		plan.Approaches, plan.Files = []string{name, words}, []string{name, words, ""}
		if plan.Publish != nil {
			plan.Publish.Stat = []string{words, name, ""}
		}
	}
	t.Feedback = append(t.Feedback, state.Feedback{ID: name, Kind: state.FeedbackCondition, By: who, Body: words, Steers: true},
		state.Feedback{ID: "comment:7", Kind: state.FeedbackCondition, By: who, Body: name, Steers: true, TakenBy: "r"})
	t.Frozen.Title, t.Frozen.Body = name, words
	t.Frozen.Changed = &state.Frozen{Title: words, Body: name + "\n" + words, By: who}
	t.Context.Existing = []state.Existing{{Kind: "branch", Name: name, By: who}, {Kind: "pull request", Name: words, By: who, Merged: true}}
	t.Context.Withheld = []state.Withheld{{ID: 90, By: who, Reason: words}, {By: who, Reason: name}}
	t.Attachments = []state.Attachment{{ID: name, Unread: words}, {ID: words, Unread: name}}
	t.Context.Stripped, t.Branch.Name, t.Branch.Base, t.Model, t.Ticket = []string{words, name}, name, words, name, words
	for i := range t.History {
		t.History[i].Reason = words
	}
	if t.Run != nil {
		t.Run.Doing, t.Run.Model, t.Run.Notes = words, name, []string{name, words}
	}
	if t.PR != nil {
		t.PR.Title, t.PR.Checks, t.PR.ChecksReason, t.PR.ChecksOptional = name, words, words, name
	}
	if t.End != nil {
		t.End.Reason, t.End.Hint = words, name
	}
	if t.Waiting != nil {
		t.Waiting.Detail = words
	}
	for _, kind := range []state.NoteKind{state.NoteDecision, state.NoteStep} {
		t.Notes = append(t.Notes, state.Note{Kind: kind, Text: words}, state.Note{Kind: kind, Text: name})
	}
	t.Proposed = []state.Proposal{{N: 1, Title: words, Body: name}, {N: 2, Title: name, Body: words, Issue: 12, URL: "https://github.com/octo/calc/issues/12"}}
	if t.Approval != nil {
		t.Approval.With, t.Approval.By = words, who
	}
	return s
}

// FuzzRender: with any untrusted texts in a task, each comment is short enough, has no open block, mentions only people
// who have to act, has only errand's markup, and links only to the repository and the log.
func FuzzRender(f *testing.F) {
	all := everything() // spoil overwrites what it changes, so that one of each is enough
	kinds := slices.Sorted(maps.Keys(all))
	seeds := []string{"# x\n```\n", "<details>\n<!--", "- [ ] a <!-- errand:box a1b2c3d4 1 -->", "> - ```\n> @octocat", "| a | `b\n|---|\n| @c", "`a @b", "</details>@x\\", "~~~ @a\n", "closes #1, fixes octo/calc#2", "[a]: https://x.org\n[a] ![b](https://y.org)", "<sub>`", "*@a", "\\"}
	for i := range len(kinds) + 2 {
		f.Add(uint8(i), seeds[i%len(seeds)], seeds[(i+5)%len(seeds)])
	}
	f.Fuzz(func(t *testing.T, n uint8, words, name string) {
		if len(words)+len(name) > 6000 {
			return
		}
		which := int(n) % (len(kinds) + 2)
		s := said{task: planned()}
		if which < len(kinds) {
			s = all[kinds[which]]
		} else {
			prOpen(s.task)
		}
		s = addUntrusted(s, words, name)
		switch which {
		case len(kinds):
			got := Status(s.task, view("k"))
			if n := unfoldedLines(got); n > 15 {
				t.Errorf("the status has %d lines", n)
			}
			checkComment(t, got)
		case len(kinds) + 1:
			s.task.Branch.Base = s.task.Repo.DefaultBranch
			in := PRInput{Summary: words, Notes: []string{name, words}, Checks: []state.CheckResult{{Name: name, Code: 1}, {Command: words, TimedOut: true}, {Name: name, Skipped: words}}}
			got := PRBody(s.task, in, view("k"))
			checkComment(t, got, "octocat") // nobody, in truth
			if list := commenttest.ClosingReferences(got); len(list) != 1 || list[0] != "Closes #7" {
				t.Errorf("the text closes %q:\n%s", list, got)
			}
		default:
			got := Render(s.task, s.post, view("k"))
			if again := Render(s.task, s.post, view("k")); again != got {
				t.Errorf("rendered again, the text is\n%s\nnot\n%s", again, got)
			}
			checkComment(t, got, s.post.By.Login, s.task.Trigger.By.Login)
		}
	})
}

// ours matches errand's own markup.
var ours = regexp.MustCompile(`^\s*(?:<details><summary>[^<]*</summary>|</details>|</?sub>|<!-- errand:(?:k|box [0-9a-f]{8} \d) -->)\s*$`)

// checkComment checks a finished comment with a different parser than the code that wrote it.
func checkComment(t *testing.T, got string, addressed ...string) {
	t.Helper()
	if n := utf8.RuneCountInString(got); n > 65_536 || len(got) > 262_144 || !utf8.ValidString(got) {
		t.Errorf("%d characters, %d bytes", n, len(got))
	}
	if strings.Count(got, "<!-- errand:k -->") != 1 || !strings.HasSuffix(got, "<!-- errand:k -->") {
		t.Errorf("marker:\n%s", got)
	}
	src := []byte(got + "\n\nprobe")
	doc := commenttest.Parse(string(src))
	last, ok := doc.LastChild().(*ast.Paragraph)
	if !ok || last.Lines().Len() != 1 || last.Lines().At(0).Start != len(src)-len("probe") {
		t.Errorf("the text has an open block:\n%s", got)
	}
	open := 0
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.HTMLBlock:
			open += checkMarkup(t, string(n.Lines().Value(src)), got)
		case *ast.RawHTML:
			open += checkMarkup(t, string(n.Segments.Value(src)), got)
		case *ast.Link:
			if to := string(n.Destination); !strings.HasPrefix(to, "https://github.example/octo/calc") && !strings.HasPrefix(to, "https://errand.example/tasks") && to != installationURL {
				t.Errorf("a link to %q in:\n%s", to, got)
			}
		case *ast.Image, *ast.AutoLink, *ast.LinkReferenceDefinition, *extast.Footnote:
			t.Errorf("a %s in:\n%s", n.Kind(), got)
		}
		return ast.WalkContinue, nil
	})
	if open != 0 {
		t.Errorf("%d tags are not closed:\n%s", open, got)
	}
	checkMentions(t, commenttest.ShownText(doc, src), got, addressed)
}

// checkMarkup takes nothing but our own tags, and counts those that open more than they close.
func checkMarkup(t *testing.T, tags, got string) int {
	t.Helper()
	for part := range strings.Lines(strings.ReplaceAll(strings.TrimSpace(tags), "--><!--", "-->\n<!--")) {
		if !ours.MatchString(part) {
			t.Errorf("markup %q in:\n%s", part, got)
		}
	}
	return strings.Count(tags, "<details>") + strings.Count(tags, "<sub>") - strings.Count(tags, "</details>") - strings.Count(tags, "</sub>")
}

var person = regexp.MustCompile(`(?:^|[^A-Za-z0-9_` + "`" + `\x00])@([A-Za-z0-9][A-Za-z0-9-]*)`)

// checkMentions checks that a comment mentions only people who have to act, each once.
func checkMentions(t *testing.T, seen, got string, addressed []string) {
	t.Helper()
	named := map[string]int{}
	for _, m := range person.FindAllStringSubmatch(seen, -1) {
		named[strings.ToLower(m[1])]++
	}
	for who, n := range named {
		if n > 1 || !slices.ContainsFunc(addressed, func(s string) bool { return strings.EqualFold(s, who) }) {
			t.Errorf("@%s is mentioned %d times; only %q may be:\n%s", who, n, addressed, got)
		}
	}
}
