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
	var answers, urls []string
	for _, o := range list {
		answers, urls = append(answers, o.Text), append(urls, FeedbackURL(t, o.To))
	}
	return "Other feedback:\n" + linkedAnswers(answers, urls)
}

// linkedAnswers lists answers, each with a link to the feedback that it answers, if that has an address. After a restoration errand finds
// its answers by these links.
func linkedAnswers(answers, urls []string) string {
	var b strings.Builder
	for i, text := range answers {
		if i == maxOthers {
			fmt.Fprintf(&b, "- and %s\n", words.Many(len(answers)-i, "more answer"))
			break
		}
		b.WriteString("- ")
		if i < len(urls) && urls[i] != "" {
			name := "comment"
			switch {
			case strings.Contains(urls[i], reviewAnchor):
				name = "review"
			case !strings.Contains(urls[i], "#"):
				name = "check"
			}
			b.WriteString(markdown.Link(name, urls[i]) + ": ")
		}
		b.WriteString(markdown.Line(text, 300) + "\n")
	}
	return b.String()
}

// reviewAnchor begins the part of a review's address that is not its pull request's.
const reviewAnchor = "#pullrequestreview-"

// FeedbackURL returns the address of a piece of feedback on GitHub, "" if it has none.
func FeedbackURL(t *state.Task, f state.Feedback) string {
	if f.Kind == state.FeedbackCI {
		return checkURL(t, f.URL)
	}
	kind, number, _ := strings.Cut(f.ID, ":")
	id, err := strconv.ParseInt(number, 10, 64)
	switch {
	case f.Thread != 0:
		return fmt.Sprintf("%s#discussion_r%d", t.PR.URL, f.Thread)
	case err != nil:
		return ""
	case kind == "comment" && f.OnPR:
		return fmt.Sprintf("%s#issuecomment-%d", t.PR.URL, id)
	case kind == "comment":
		return fmt.Sprintf("%s/issues/%d#issuecomment-%d", t.Repo.URL, t.Key.Issue, id)
	case kind == "review":
		return fmt.Sprintf("%s%s%d", t.PR.URL, reviewAnchor, id)
	}
	return ""
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
