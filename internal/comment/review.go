package comment

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/errand-bot/errand/internal/comment/markdown"
	"github.com/errand-bot/errand/internal/words"
	"github.com/errand-bot/errand/state"
)

// ThreadResult is how a review round ended in one thread.
type ThreadResult string

// The results.
const (
	ThreadChanged    ThreadResult = "changed"  // with a commit
	ThreadAnswered   ThreadResult = "answered" // with an explanation
	ThreadQuestion   ThreadResult = "question" // the answer asks back
	ThreadUnanswered ThreadResult = "none"     // the agent said nothing about it
)

// AnsweredThread is a line in the text of a review.
type AnsweredThread struct {
	Path   string
	Line   int   // 0 for a whole file
	Top    int64 // first comment of the thread
	Result ThreadResult
	Commit string // published ID, if something was changed
}

// ReviewInput has the contents of the text of errand's review in addition to the task.
type ReviewInput struct {
	Summary string // the agent's summary of the round
	Threads []AnsweredThread
	// Others are answers to feedback outside of threads, or in threads that no longer exist.
	Others []OtherAnswer
}

// OtherAnswer is an answer that is only in the text of a review.
type OtherAnswer struct {
	To   state.Feedback
	Text string
}

// maxOthers is the maximum number of other answers in a review's text.
const maxOthers = 30

// maxReviewLines is the maximum number of threads that a review's text lists.
const maxReviewLines = 100

// ReviewBody renders the text of the review with which errand answers a round. The answers themselves are in the threads.
func ReviewBody(t *state.Task, in ReviewInput, v View) string {
	var text string
	for _, budget := range budgets() {
		title := "**" + reviewTally(in.Threads) + "**"
		summary := markdown.EmbedTruncated(in.Summary, budget, v.log(t, "the log"))
		if summary != "" && !strings.Contains(summary, "\n") {
			title, summary = title+" "+summary, ""
		}
		text = markdown.Paragraphs(title, summary, reviewLines(t, in.Threads), otherAnswers(t, in.Others), proposals(t, v))
		if utf8.RuneCountInString(text) <= MaxLength-300 {
			break
		}
	}
	return v.marked(text)
}

// otherAnswers lists the answers to other feedback, each with a link to it.
func otherAnswers(t *state.Task, list []OtherAnswer) string {
	if len(list) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("Other feedback:\n")
	for i, o := range list {
		if i == maxOthers {
			fmt.Fprintf(&b, "- and %s\n", words.Many(len(list)-i, "more answer"))
			break
		}
		b.WriteString("- ")
		if name, url := feedbackLink(t, o.To); url != "" {
			b.WriteString(markdown.Link(name, url) + ": ")
		}
		b.WriteString(markdown.Line(o.Text, 300) + "\n")
	}
	return b.String()
}

// feedbackLink returns what a piece of feedback is, and its address, which is empty if it has none.
func feedbackLink(t *state.Task, f state.Feedback) (name, url string) {
	kind, number, _ := strings.Cut(f.ID, ":")
	id, err := strconv.ParseInt(number, 10, 64)
	switch {
	case f.Thread != 0:
		return "comment", fmt.Sprintf("%s#discussion_r%d", t.PR.URL, f.Thread)
	case err != nil:
		return "", ""
	case kind == "comment" && f.OnPR:
		return kind, fmt.Sprintf("%s#issuecomment-%d", t.PR.URL, id)
	case kind == "comment":
		return kind, fmt.Sprintf("%s/issues/%d#issuecomment-%d", t.Repo.URL, t.Key.Issue, id)
	case kind == "review":
		return kind, fmt.Sprintf("%s#pullrequestreview-%d", t.PR.URL, id)
	}
	return "", ""
}

// reviewTally counts the threads by their results, such as "5 of 6 addressed, 1 question."
func reviewTally(list []AnsweredThread) string {
	n := map[ThreadResult]int{}
	for _, th := range list {
		n[th.Result]++
	}
	s := fmt.Sprintf("%d of %d addressed", n[ThreadChanged]+n[ThreadAnswered], len(list))
	if q := n[ThreadQuestion]; q > 0 {
		s += ", " + words.Many(q, "question")
	}
	if none := n[ThreadUnanswered]; none > 0 {
		s += fmt.Sprintf(", %d without an answer", none)
	}
	return s + "."
}

// reviewLines links each thread with its result.
func reviewLines(t *state.Task, list []AnsweredThread) string {
	var b strings.Builder
	for i, th := range list {
		if i == maxReviewLines {
			fmt.Fprintf(&b, "- and %d more\n", len(list)-i)
			break
		}
		where := markdown.CutWithNote(th.Path, 200)
		if th.Line > 0 {
			where += fmt.Sprintf(":%d", th.Line)
		}
		fmt.Fprintf(&b, "- %s: %s\n", markdown.Link(markdown.Code(where), fmt.Sprintf("%s#discussion_r%d", t.PR.URL, th.Top)), threadResult(t, th))
	}
	return b.String()
}

func threadResult(t *state.Task, th AnsweredThread) string {
	switch th.Result {
	case ThreadChanged:
		return "changed in " + commit(t, th.Commit)
	case ThreadAnswered:
		return "answered"
	case ThreadQuestion:
		return "a question"
	}
	return "the agent gave no answer"
}
