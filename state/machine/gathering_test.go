package machine

import (
	"slices"
	"testing"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

var colleague = state.Person{ID: 12, Login: "grace"}

// said applies a comment of a writer, without a command or, with a mention, as a message.
func (l *life) said(id int64, by state.Person, m state.Comment) {
	l.t.Helper()
	m.ID, m.At, m.Node = id, l.now, "c"
	p := event.Commented{Comment: &m}
	if m.Mention {
		p.Orders = []state.Order{{Verb: state.VerbMessage, Text: m.Body}}
	}
	l.do(event.Event{By: by, Permission: state.PermissionWrite, Payload: p})
}

// approvedBy applies a checked 👍 on the newest revision.
func (l *life) approvedBy(by state.Person) {
	p := l.task.NewestPlan()
	l.do(event.Event{Payload: event.Approved{Candidate: state.Candidate{Comment: p.Comment, Approval: state.Approval{Kind: p.Kind, Hash: p.Hash, By: by, Permission: state.PermissionWrite, Via: state.ViaReaction, Given: l.now}}}})
}

// posted returns the reasons of the posts and the contents of the reactions that the last event enqueued.
func (l *life) posted() (list []string) {
	for _, j := range l.jobs {
		switch {
		case j.Post != nil && j.Post.Reason != "":
			list = append(list, j.Post.Reason)
		case j.Post != nil:
			list = append(list, string(j.Post.Kind))
		case j.Kind == state.JobReact:
			list = append(list, string(j.Args.Reaction))
		}
	}
	return list
}

// TestRemarksStartNothing: thanks, emoji, bare approvals and comments to others start no run and defeat no approval.
func TestRemarksStartNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		said state.Comment
		want []string // at the first time; the second time nothing but reactions
	}{
		"thanks":                  {state.Comment{Body: "Thanks!", Remark: state.RemarkThanks}, nil},
		"thanks with a mention":   {state.Comment{Body: "Thanks!", Remark: state.RemarkThanks, Mention: true}, []string{"+1"}},
		"a +1":                    {state.Comment{Body: "+1", Remark: state.RemarkReaction}, nil},
		"to a colleague":          {state.Comment{Body: "@grace what do you think?", Remark: state.RemarkToOthers}, nil},
		"a bare approval":         {state.Comment{Body: "LGTM", Remark: state.RemarkApproving}, []string{state.ReplyHowToApprove}},
		"a bare approval, to bot": {state.Comment{Body: "LGTM", Remark: state.RemarkApproving, Mention: true}, []string{state.ReplyHowToApprove, "eyes"}},
	} {
		for _, by := range []state.Person{writer, colleague} {
			t.Run(name+" by "+by.Login, func(t *testing.T) {
				t.Parallel()
				l := newLife(t)
				l.toPreliminary()
				l.said(50, by, c.said)
				l.want(state.PhaseAwaitingPreliminaryApproval)
				if got := l.posted(); !slices.Equal(got, c.want) || l.task.Gathering != nil || len(l.task.Feedback) != 0 {
					t.Errorf("got posts %v, gathering %v, feedback %v; want posts %v only", got, l.task.Gathering, l.task.Feedback, c.want)
				}
				l.said(51, by, c.said)
				if got := l.posted(); slices.Contains(got, state.ReplyHowToApprove) {
					t.Errorf("the second time: got posts %v, want the hint once per revision", got)
				}
				l.approvedBy(writer)
				l.want(state.PhasePlanning, state.JobLaunch)
			})
		}
	}
}

// TestCommentsAreGathered: a run starts a while after the last comment, and at the latest a while after the first.
func TestCommentsAreGathered(t *testing.T) {
	t.Parallel()
	p := DefaultPolicy()
	l := newLife(t)
	l.toPreliminary()
	first := l.now.Add(time.Second)
	for i := range 8 {
		l.said(int64(50+i), []state.Person{writer, colleague}[i%2], state.Comment{Body: "And this."})
		if want := min(l.now.Sub(first)+p.GatherTalk, p.GatherMax); l.task.Gathering.Until.Sub(first) != want {
			t.Fatalf("after comment %d: got gathering for %s, want %s", i+1, l.task.Gathering.Until.Sub(first), want)
		}
		l.now = l.now.Add(p.GatherTalk - 10*time.Second)
		l.do(event.Event{Payload: event.Due{For: state.DueComments}})
		if l.task.Phase != state.PhaseAwaitingPreliminaryApproval {
			if l.now.Sub(first) < p.GatherMax || len(l.task.Feedback) != i+1 {
				t.Errorf("got a run after %s with %d comments", l.now.Sub(first), len(l.task.Feedback))
			}
			return
		}
		if j := jobOf(l.jobs, state.JobDue); !j.NotBefore.Equal(l.task.Gathering.Until) {
			t.Fatalf("got the next check at %s, want %s", j.NotBefore, l.task.Gathering.Until)
		}
	}
	t.Error("got no run although people kept commenting")
}

// TestGatheredCommentsAreReadAgain: the agent gets an edited comment as it is, and no withdrawn one. Without any left,
// nothing starts, and an approval that was held is checked.
func TestGatheredCommentsAreReadAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reread []state.Comment
		want   []string
	}{
		"unchanged":         {nil, []string{"Use a map.", "And a test."}},
		"one edited":        {[]state.Comment{{ID: 50, Body: "Use a slice."}}, []string{"Use a slice.", "And a test."}},
		"one deleted":       {[]state.Comment{{ID: 51, Withdrawn: state.RejectedCommentDeleted}}, []string{"Use a map."}},
		"one is thanks now": {[]state.Comment{{ID: 50, Body: "Thanks!", Remark: state.RemarkThanks}}, []string{"And a test."}},
		"both deleted":      {[]state.Comment{{ID: 50, Withdrawn: state.RejectedCommentDeleted}, {ID: 51, Withdrawn: state.RejectedCommentEdited}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.toPreliminary()
			l.said(50, writer, state.Comment{Body: "Use a map."})
			l.said(51, colleague, state.Comment{Body: "And a test."})
			l.approvedBy(colleague)
			if len(l.task.Held) != 1 {
				t.Fatalf("got held approvals %v, want one", l.task.Held)
			}
			l.gathered(c.reread...)
			var got []string
			for _, f := range l.task.Feedback {
				got = append(got, f.Body)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got comments %v, want %v", got, c.want)
			}
			if started := l.task.Run != nil; started != (len(c.want) > 0) || l.enqueued(state.JobApprove) == started || len(l.task.Held) > 0 != started {
				t.Errorf("got a run %v, jobs %v, held %v", started, kindsOf(l.jobs), l.task.Held)
			}
		})
	}
}

// TestConsideredComments: the run ends in a new revision, an answer, or nothing, and decides about held approvals.
func TestConsideredComments(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mention bool
		res     state.RunResult
		posts   []string
		revised bool
	}{
		"revised":              {false, state.RunResult{Outcome: state.OutcomeBuild, Text: "Another plan."}, []string{"plan", state.RejectedRevised}, true},
		"answered":             {false, state.RunResult{Outcome: state.OutcomeAnswered, Text: "Ten dollars."}, []string{"answered"}, false},
		"unchanged":            {false, state.RunResult{Outcome: state.OutcomeUnchanged}, []string{"+1"}, false},
		"unchanged, to errand": {true, state.RunResult{Outcome: state.OutcomeUnchanged}, []string{"answered"}, false},
		"revised to the same":  {false, state.RunResult{Outcome: state.OutcomeBuild, Text: " A plan.\n"}, []string{"+1"}, false},
		"other approaches":     {false, state.RunResult{Outcome: state.OutcomeBuild, Text: "A plan.", Approaches: []string{"a", "b"}}, []string{"plan", state.RejectedRevised}, true},
	} {
		for _, during := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				l := newLife(t)
				l.toPreliminary()
				l.said(50, writer, state.Comment{Body: "What would it cost?", Mention: c.mention})
				if !during {
					l.approvedBy(colleague)
				}
				l.gathered()
				l.want(state.PhasePreliminaryPlanning, state.JobLaunch)
				l.launch()
				if during {
					l.approvedBy(colleague)
				}
				l.want(state.PhasePreliminaryPlanning)
				before := *l.task.NewestPlan()
				l.end(c.res)
				l.want(state.PhaseAwaitingPreliminaryApproval)
				if got := l.posted(); !slices.Equal(got, c.posts) {
					t.Errorf("got posts %v, want %v", got, c.posts)
				}
				p := l.task.NewestPlan()
				if len(l.task.Held) != 0 || len(l.task.Feedback) != 0 || l.enqueued(state.JobApprove) == c.revised {
					t.Errorf("got held %v, feedback %v, jobs %v", l.task.Held, l.task.Feedback, kindsOf(l.jobs))
				}
				if c.revised {
					return
				}
				if p.Hash != before.Hash || !p.Open() || l.enqueued(state.JobMinimize) {
					t.Errorf("got plan %+v, want it unchanged", p)
				}
				l.approvedBy(colleague)
				l.want(state.PhasePlanning, state.JobLaunch)
				l.approvedBy(writer)
				if l.want(state.PhasePlanning); len(l.posted()) > 0 {
					t.Errorf("got a second approval answered: %v", l.posted())
				}
			})
		}
	}
}

// TestCommentsDuringConsideration: they are gathered for the next run, and an approval stays held until then.
func TestCommentsDuringConsideration(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.toPreliminary()
	l.said(50, writer, state.Comment{Body: "What would it cost?"})
	l.gathered()
	l.launch()
	l.approvedBy(colleague)
	l.said(51, colleague, state.Comment{Body: "And how long?"})
	l.end(state.RunResult{Outcome: state.OutcomeAnswered, Text: "Ten dollars."})
	l.want(state.PhaseAwaitingPreliminaryApproval, state.JobPost, state.JobDue)
	if l.task.Gathering == nil || len(l.task.Held) != 1 || len(l.task.Feedback) != 1 {
		t.Fatalf("got gathering %v, held %v, feedback %v", l.task.Gathering, l.task.Held, l.task.Feedback)
	}
	l.gathered()
	l.launch()
	l.end(state.RunResult{Outcome: state.OutcomeUnchanged})
	l.want(state.PhaseAwaitingPreliminaryApproval, state.JobApprove)
}

// TestPlanCannotStay: where the revision that people commented on cannot be approved, a conclusion that leaves it as it is
// makes a revision with the same text; without any plan, it is none.
func TestPlanCannotStay(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(*life){
		"its comment was edited": func(l *life) { l.task.NewestPlan().Stale = state.StaleEdited },
		"the issue was edited":   func(l *life) { l.task.Frozen.Hash = "other" },
	} {
		for _, o := range []state.Outcome{state.OutcomeAnswered, state.OutcomeUnchanged} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				l := newLife(t)
				l.toPreliminary()
				l.said(50, writer, state.Comment{Body: "What would it cost?"})
				l.gathered()
				l.launch()
				set(l)
				l.end(state.RunResult{Outcome: o, Text: "Words."})
				l.want(state.PhaseAwaitingPreliminaryApproval)
				if p := l.task.NewestPlan(); p.Revision != 2 || p.Text != "A plan." || p.Stale != "" {
					t.Errorf("got plan %+v, want another revision with the old text", p)
				}
				if got := slices.Contains(l.posted(), "answered"); got != (o == state.OutcomeAnswered) {
					t.Errorf("%s: got an answer %v", o, got)
				}
			})
		}
	}
	l := newLife(t)
	l.trigger()
	l.start()
	l.launch()
	l.end(state.RunResult{Outcome: state.OutcomeUnchanged})
	l.want(state.PhaseInterrupted)
}

// TestCommentsOnAQuestion: an answer continues the work. A question in return and chatter leave the agent's question open;
// remarks that are no answer start nothing.
func TestCommentsOnAQuestion(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		said  state.Comment
		by    state.Person
		res   state.RunResult
		phase state.Phase
		posts []string
	}{
		"an answer":         {state.Comment{Body: "The blue one."}, colleague, state.RunResult{Outcome: state.OutcomeDone}, state.PhaseImplementing, nil},
		"a +1":              {state.Comment{Body: "+1", Remark: state.RemarkReaction}, writer, state.RunResult{Outcome: state.OutcomeDone}, state.PhaseImplementing, nil},
		"an ok":             {state.Comment{Body: "ok", Remark: state.RemarkApproving}, writer, state.RunResult{Outcome: state.OutcomeDone}, state.PhaseImplementing, nil},
		"asks back":         {state.Comment{Body: "Which are there?"}, writer, state.RunResult{Outcome: state.OutcomeAnswered, Text: "Two."}, state.PhaseAwaitingAnswer, []string{"answered"}},
		"not about it":      {state.Comment{Body: "I am on vacation."}, colleague, state.RunResult{Outcome: state.OutcomeUnchanged}, state.PhaseAwaitingAnswer, []string{"+1"}},
		"thanks":            {state.Comment{Body: "Thanks!", Remark: state.RemarkThanks}, writer, state.RunResult{}, "", nil},
		"to somebody else":  {state.Comment{Body: "@grace?", Remark: state.RemarkToOthers}, writer, state.RunResult{}, "", nil},
		"thanks, to errand": {state.Comment{Body: "Thanks!", Remark: state.RemarkThanks, Mention: true}, writer, state.RunResult{}, "", []string{"+1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.implementing()
			l.end(state.RunResult{Outcome: state.OutcomeQuestion, Question: "Which?"})
			l.do(event.Event{Payload: event.Posted{Comment: state.Posted{ID: 33, At: l.now}, Post: &state.Post{Kind: state.PostQuestion}}})
			l.said(50, c.by, c.said)
			l.want(state.PhaseAwaitingAnswer)
			if c.phase == "" {
				if got := l.posted(); !slices.Equal(got, c.posts) || l.task.Gathering != nil || l.task.Question == nil {
					t.Errorf("got posts %v, gathering %v, question %v", got, l.task.Gathering, l.task.Question)
				}
				return
			}
			l.gathered()
			l.want(state.PhaseImplementing, state.JobLaunch)
			l.launch()
			l.end(c.res)
			l.want(c.phase)
			if c.phase == state.PhaseImplementing {
				if l.want(c.phase, state.JobCollect); l.task.Asked != nil {
					t.Errorf("got the answered question %v kept", l.task.Asked)
				}
				return
			}
			if got := l.posted(); !slices.Equal(got, c.posts) {
				t.Errorf("got posts %v, want %v", got, c.posts)
			}
			if q := l.task.Question; q == nil || q.Text != "Which?" || q.Comment != 33 || l.task.Resume != state.PhaseImplementing || len(l.task.Feedback) != 0 {
				t.Errorf("got question %+v, resume %s, feedback %v", q, l.task.Resume, l.task.Feedback)
			}
			l.said(51, writer, state.Comment{Body: "The blue one."})
			l.gathered()
			l.want(state.PhaseImplementing, state.JobLaunch)
		})
	}
}

// TestQuestionAboutComments: a run that considers comments on a plan may ask; the comments stay until they are answered.
func TestQuestionAboutComments(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.toPreliminary()
	l.said(50, writer, state.Comment{Body: "Use the other one."})
	l.gathered()
	l.launch()
	l.end(state.RunResult{Outcome: state.OutcomeQuestion, Question: "Which?"})
	l.want(state.PhaseAwaitingAnswer)
	l.said(51, colleague, state.Comment{Body: "Oh, never mind."})
	l.gathered()
	l.want(state.PhasePreliminaryPlanning, state.JobLaunch)
	l.launch()
	if len(l.task.Feedback) != 2 {
		t.Errorf("got feedback %v, want both comments", l.task.Feedback)
	}
	l.end(state.RunResult{Outcome: state.OutcomeUnchanged})
	l.want(state.PhaseAwaitingPreliminaryApproval)
	if got := l.posted(); !slices.Equal(got, []string{"+1", "+1"}) || len(l.task.Feedback) != 0 || !l.task.NewestPlan().Open() {
		t.Errorf("got posts %v, feedback %v", got, l.task.Feedback)
	}
}

// TestReviewRemarksStartNoRound: a review that thanks, that approves in words, or that begins by addressing somebody else is no
// feedback; its threads are read all the same.
func TestReviewRemarksStartNoRound(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		review state.Review
		want   bool // a round
	}{
		"to a colleague":        {state.Review{State: state.ReviewCommented, Body: "@grace what do you think?", Remark: state.RemarkToOthers}, false},
		"thanks":                {state.Review{State: state.ReviewCommented, Body: "Thanks!", Remark: state.RemarkThanks}, false},
		"an approval in words":  {state.Review{State: state.ReviewApproved, Body: "LGTM", Remark: state.RemarkApproving}, false},
		"a request":             {state.Review{State: state.ReviewCommented, Body: "Use a map."}, true},
		"changes are requested": {state.Review{State: state.ReviewChangesRequested, Body: "@grace told me that it breaks", Remark: state.RemarkToOthers}, true},
	} {
		for _, by := range []state.Person{writer, colleague} {
			t.Run(name+" by "+by.Login, func(t *testing.T) {
				t.Parallel()
				l := newLife(t)
				l.toPR()
				review := c.review
				review.ID = 7
				l.do(event.Event{By: by, Permission: state.PermissionWrite, Payload: event.Reviewed{Review: review}})
				l.want(state.PhasePROpen, state.JobGather)
				l.do(event.Event{Payload: event.Gathered{}})
				if got := l.task.Phase == state.PhaseAddressingReview; got != c.want {
					t.Errorf("got phase %s and feedback %v, want a round: %t", l.task.Phase, l.task.Feedback, c.want)
				}
			})
		}
	}
}
