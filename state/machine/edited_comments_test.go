package machine

import (
	"slices"
	"testing"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// TestEditedAnswersCount: a gathered comment on a question that was edited still answers it, however short it is. Thanks do not.
func TestEditedAnswersCount(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		now   state.Comment
		phase state.Phase
		posts []string
	}{
		"yes":             {state.Comment{ID: 50, Body: "Yes.", Remark: state.RemarkApproving}, state.PhaseImplementing, nil},
		"+1":              {state.Comment{ID: 50, Body: "+1", Remark: state.RemarkReaction}, state.PhaseImplementing, nil},
		"words":           {state.Comment{ID: 50, Body: "The blue one."}, state.PhaseImplementing, nil},
		"thanks":          {state.Comment{ID: 50, Body: "Thanks!", Remark: state.RemarkThanks}, state.PhaseAwaitingAnswer, []string{"+1"}},
		"to someone else": {state.Comment{ID: 50, Body: "@grace?", Remark: state.RemarkToOthers}, state.PhaseAwaitingAnswer, []string{"+1"}},
	} {
		for _, by := range []state.Person{writer, colleague} {
			t.Run(name+" by "+by.Login, func(t *testing.T) {
				t.Parallel()
				l := newLife(t)
				l.implementing()
				l.end(state.RunResult{Outcome: state.OutcomeQuestion, Question: "Blue?"})
				l.said(50, by, state.Comment{Body: "Yse."})
				l.gathered(c.now)
				l.want(c.phase)
				if got := l.posted(); !slices.Equal(got, c.posts) || l.task.Gathering != nil && c.phase == state.PhaseAwaitingAnswer {
					t.Errorf("got posts %v, gathering %v", got, l.task.Gathering)
				}
				if c.phase == state.PhaseImplementing && (len(l.task.Feedback) != 1 || l.task.Feedback[0].Body != c.now.Body) {
					t.Errorf("got feedback %v, want %q", l.task.Feedback, c.now.Body)
				}
			})
		}
	}
}

// TestCommentEditedToARemark: a gathered comment that was edited into "LGTM" is answered like one that was written so, and one that
// was edited to address errand is answered in any case.
func TestCommentEditedToARemark(t *testing.T) {
	t.Parallel()
	for _, by := range []state.Person{writer, colleague} {
		l := newLife(t)
		l.toPreliminary()
		l.said(50, by, state.Comment{Body: "LGMT"})
		l.gathered(state.Comment{ID: 50, Body: "LGTM", Remark: state.RemarkApproving})
		l.want(state.PhaseAwaitingPreliminaryApproval)
		if got := l.posted(); !slices.Equal(got, []string{"+1", state.ReplyHowToApprove}) {
			t.Errorf("%s: got posts %v", by.Login, got)
		}
		l.said(51, by, state.Comment{Body: "Errand, what would it cost?"})
		l.gathered(state.Comment{ID: 51, Body: "what would it cost?", Mention: true})
		l.launch()
		l.end(state.RunResult{Outcome: state.OutcomeUnchanged})
		if got := l.posted(); !slices.Equal(got, []string{"answered"}) {
			t.Errorf("%s: got posts %v, want an answer", by.Login, got)
		}
	}
}

// TestQuotedCommandAmongOtherWords: the words are gathered like any comment, and a reply says that the command does not count.
func TestQuotedCommandAmongOtherWords(t *testing.T) {
	t.Parallel()
	for _, words := range []bool{false, true} {
		for _, by := range []state.Person{writer, colleague} {
			l := newLife(t)
			l.toPreliminary()
			l.said(50, by, state.Comment{Body: "> @errand approve", Quoted: true, Words: words})
			want := []string{state.RejectedQuoted}
			if words {
				want = append(want, "eyes")
			}
			if got := l.posted(); !slices.Equal(got, want) || l.task.Gathering != nil != words || len(l.task.Feedback) > 0 != words {
				t.Errorf("%s, words %v: got posts %v, gathering %v", by.Login, words, got, l.task.Gathering)
			}
		}
	}
}

// TestDeletedAfterMessageIsNotDelivered: a message that waits for the end of a run and is deleted meanwhile reaches no agent.
func TestDeletedAfterMessageIsNotDelivered(t *testing.T) {
	t.Parallel()
	for _, by := range []state.Person{writer, colleague} {
		l := newLife(t)
		l.trigger()
		l.start()
		l.launch()
		l.tellAfter(50, by, "Add a changelog.")
		l.do(event.Event{By: by, Payload: event.CommentDeleted{Comment: &state.Comment{ID: 50}}})
		l.end(state.RunResult{Outcome: state.OutcomeBuild, Text: "A plan."})
		l.want(state.PhaseAwaitingPreliminaryApproval)
		if len(l.task.Feedback) != 0 {
			t.Errorf("%s: got feedback %v, want none", by.Login, l.task.Feedback)
		}
	}
}

// TestCommentsOnThePullRequestAreRead: while a question of the agent is open or changes wait for approval, comments on the pull request
// count like those on the issue.
func TestCommentsOnThePullRequestAreRead(t *testing.T) {
	t.Parallel()
	asked := func(l *life) {
		l.toPR()
		l.beginRound()
		l.end(state.RunResult{Outcome: state.OutcomeQuestion, Question: "Which?"})
		l.want(state.PhaseAwaitingAnswer)
	}
	for name, c := range map[string]struct {
		to    func(*life)
		said  state.Comment
		reads bool
		posts []string
	}{
		"an answer":             {asked, state.Comment{Body: "The blue one."}, true, []string{"eyes"}},
		"an ok":                 {asked, state.Comment{Body: "ok", Remark: state.RemarkApproving}, true, []string{"eyes"}},
		"thanks":                {asked, state.Comment{Body: "Thanks!", Remark: state.RemarkThanks}, false, nil},
		"to somebody else":      {asked, state.Comment{Body: "@grace?", Remark: state.RemarkToOthers}, false, nil},
		"on changes":            {func(l *life) { l.toShown() }, state.Comment{Body: "Use a map."}, true, []string{"eyes"}},
		"thanks for changes":    {func(l *life) { l.toShown() }, state.Comment{Body: "Thanks!", Remark: state.RemarkThanks}, false, nil},
		"changes look good":     {func(l *life) { l.toShown() }, state.Comment{Body: "LGTM", Remark: state.RemarkApproving}, false, []string{state.ReplyHowToApprove}},
		"nothing is asked":      {func(l *life) { l.toPR() }, state.Comment{Body: "Use a map."}, false, nil},
		"after a stop":          {func(l *life) { l.toPR(); l.beginRound(); l.comment(state.VerbStop) }, state.Comment{Body: "Use a map."}, false, nil},
		"an agent addresses it": {func(l *life) { l.toPR(); l.beginRound() }, state.Comment{Body: "Use a map."}, false, nil},
	} {
		for _, by := range []state.Person{writer, colleague} {
			t.Run(name+" by "+by.Login, func(t *testing.T) {
				t.Parallel()
				l := newLife(t)
				c.to(l)
				before := len(l.task.Feedback)
				said := c.said
				said.OnPR = true
				l.said(60, by, said)
				if got := l.posted(); !slices.Equal(got, c.posts) || l.task.Gathering != nil != c.reads || len(l.task.Feedback) > before != c.reads {
					t.Errorf("got posts %v, gathering %v, feedback %v", got, l.task.Gathering, l.task.Feedback)
				}
			})
		}
	}
}
