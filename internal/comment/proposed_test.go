package comment

import (
	"strings"
	"testing"

	"github.com/errand-bot/errand/state"
)

// noted returns a task whose agent used its tools with dangerous texts.
func noted() *state.Task {
	t := planned()
	prOpen(t)
	t.Notes = []state.Note{
		{Kind: state.NoteFact, Text: "a fact"}, {Kind: state.NoteDecision, Text: "keep @octocat's API; closes #1\n</details>"}, {Kind: state.NoteStep, Text: "step | one\n# x"},
	}
	t.Proposed = []state.Proposal{
		{N: 1, Title: "Made already", Body: "x", Issue: 12, URL: "https://github.com/octo/calc/issues/12"},
		{N: 2, Title: "A [link](https://x.org) by @octocat\n- [ ] x", Body: "fixes octo/calc#2, @octocat\n\n```\nopen", By: state.Person{ID: 5, Login: "octocat"}},
	}
	return t
}

// TestProposals: proposed issues are listed until they are created.
func TestProposals(t *testing.T) {
	t.Parallel()
	task, v := noted(), View{Slug: "errand", Key: "k"}
	for name, p := range map[string]state.Post{
		"opened": {Kind: state.PostPROpened}, "round": {Kind: state.PostRound, Text: "Done."}, "report": {Kind: state.PostReport, Text: "Words."},
		"number": {Kind: state.PostReply, Reason: state.ReplyNoProposal},
	} {
		got := Render(task, p, v)
		if !strings.Contains(got, "`@errand create issue 2`: A ") || strings.Contains(got, "create issue 1`") {
			t.Errorf("%s:\n%s", name, got)
		}
		for _, no := range []string{"](https://x.org)", "\n- [ ]", " @octocat\n", "by @octocat "} {
			if strings.Contains(got, no) {
				t.Errorf("%s has %q:\n%s", name, no, got)
			}
		}
	}
	if got := Render(task, state.Post{Kind: state.PostReply, Reason: state.ReplyIssueCreated, Items: []string{"1"}}, v); !strings.Contains(got, "Proposal 1 is now [#12](https://github.com/octo/calc/issues/12).") {
		t.Error(got)
	}
	failed := state.Post{Kind: state.PostReply, Reason: state.ReplyIssueFailed, Items: []string{"2"}, Text: "GitHub did not answer, @octocat.", By: task.Proposed[1].By}
	if got := Render(task, failed, v); !strings.HasPrefix(got, "@octocat, errand could not create an issue from proposal 2. GitHub did not answer, ") || !strings.Contains(got, " `@errand create issue 2` tries again.") {
		t.Error(got)
	}
	for _, n := range []string{"2", "0", "x", "99"} {
		if got := Render(task, state.Post{Kind: state.PostReply, Reason: state.ReplyIssueCreated, Items: []string{n}}, v); strings.Contains(got, "#") {
			t.Errorf("%s: %s", n, got)
		}
	}
	task.Proposed = nil
	if got := Render(task, state.Post{Kind: state.PostPROpened}, v); strings.Contains(got, "create issue") {
		t.Error(got)
	}
}

// TestProposedIssuesAreHarmless: a proposed issue mentions nobody, closes nothing and names its origin.
func TestProposedIssuesAreHarmless(t *testing.T) {
	t.Parallel()
	task := noted()
	title, body := Proposed(task, &task.Proposed[1], View{Slug: "errand", Key: "k"})
	if strings.Contains(title, "@octocat") || strings.Contains(title, "\n") {
		t.Errorf("title %q", title)
	}
	for _, want := range []string{"`@octocat`", "Proposed by the agent that works on #", Marker("k")} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q in:\n%s", want, body)
		}
	}
	if strings.Contains(body, "fixes octo/calc#2") {
		t.Errorf("the text closes an issue:\n%s", body)
	}
	if title, _ = Proposed(task, &state.Proposal{Title: " \u200b\n", Body: strings.Repeat("x", 200_000)}, View{}); !strings.HasPrefix(title, "Found while") {
		t.Errorf("title %q", title)
	}
}

// TestNotes: decisions are in the pull request, the newest step in the status comment.
func TestNotes(t *testing.T) {
	t.Parallel()
	task, v := noted(), View{Slug: "errand"}
	body := PRBody(task, PRInput{Summary: "Did it."}, v)
	if !strings.Contains(body, "Decisions during the work:\n\n- keep `@octocat`") || strings.Contains(body, "a fact") || strings.Contains(body, "</details>\n\n##") {
		t.Error(body)
	}
	if got := Status(task, v); !strings.Contains(got, "**Steps done:** 1, last: step") {
		t.Error(got)
	}
}
