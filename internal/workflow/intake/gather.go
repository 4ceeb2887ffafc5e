package intake

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/comment/command"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/forge/green"
	"github.com/errand-bot/errand/internal/trust"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// Gather reads people's comments in review threads that errand has not answered.
func (s *Steps) Gather(ctx context.Context, w *step.Attempt) (event.Event, error) {
	if w.Task.PR == nil {
		return step.Done(), nil
	}
	threads, err := s.GitHub.Threads(ctx, w.Repo, w.Task.PR.Number)
	if err != nil {
		return event.Event{}, fmt.Errorf("read the review threads: %w", err)
	}
	me, err := s.GitHub.Self(ctx)
	if err != nil {
		return event.Event{}, err
	}
	var feedback []state.Feedback
	trusted := map[int64]bool{}
	for _, th := range threads {
		if th.Resolved {
			continue
		}
		f, err := s.threadFeedback(ctx, w, th, me, trusted)
		if err != nil {
			return event.Event{}, err
		}
		if f != nil {
			feedback = append(feedback, *f)
		}
	}
	return event.Event{Payload: event.Gathered{Feedback: feedback}}, nil
}

// threadFeedback returns the comments in a thread that errand has not answered, by people with write
// permission and by people and bots that are listed. A comment that somebody else edited counts only
// if the editor does, too. If all of them are between people, there is no feedback.
func (s *Steps) threadFeedback(ctx context.Context, w *step.Attempt, th forge.Thread, me forge.App, trusted map[int64]bool) (*state.Feedback, error) {
	var last *forge.Comment
	var words []string
	addressed := addressedComments(th.Comments, me)
	answered := step.LastAnswered(th.Comments, me)
	for i := range th.Comments {
		c := &th.Comments[i]
		if c.ID <= answered || c.Author.ID == me.BotID {
			continue
		}
		ok, err := s.heard(ctx, w, c.Author, trusted)
		if err == nil && ok && c.Editor != nil {
			ok, err = s.heard(ctx, w, *c.Editor, trusted)
		}
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		body, _ := trust.Strip(c.Body)
		body, _ = s.Redact.Redact(body)
		words = append(words, body)
		if addressed[i] {
			last = c
		}
	}
	if last == nil {
		return nil, nil
	}
	return &state.Feedback{
		ID: fmt.Sprintf("thread:%d:%d", th.TopID, last.ID), Kind: state.FeedbackThread, By: last.Author, At: last.CreatedAt,
		Body: strings.Join(words, "\n\n"), Path: th.Path, Line: th.Line, Hunk: th.Hunk, Thread: th.TopID, OnPR: true,
	}, nil
}

// addressedComments reports for each comment of a thread whether it is for errand. A comment that starts the thread is
// for errand, and so are an answer to errand or to a bot, a comment that mentions errand, and what the same person adds
// to one of these. Other replies are between people, unless errand started the thread. Thanks, and a comment that begins by
// addressing somebody else, are never for errand; what follows thanks is read as if they were not there.
func addressedComments(list []forge.Comment, me forge.App) []bool {
	out := make([]bool, len(list))
	before := 0 // the comment before, except people's thanks
	for i := range list {
		c := &list[i]
		if i > 0 && (list[i-1].Author.Bot || command.ClassifyRemark(list[i-1].Body, me.Slug) != state.RemarkThanks) {
			before = i - 1
		}
		switch {
		case c.Author.ID == me.BotID, isRemark(c.Body, me.Slug):
		case i == 0, list[0].Author.ID == me.BotID, command.Mentions(c.Body, me.Slug):
			out[i] = true
		case list[before].Author.Bot, list[before].Author.ID == me.BotID:
			out[i] = true
		default:
			out[i] = out[before] && c.Author.ID != 0 && c.Author.ID == list[before].Author.ID
		}
	}
	return out
}

// isRemark reports whether a reply in a thread is addressed to somebody else, without a mention of errand, or consists of
// thanks. A +1 or "ok" may be the answer to a question.
func isRemark(body, slug string) bool {
	switch command.ClassifyRemark(body, slug) {
	case state.RemarkToOthers:
		return !command.Mentions(body, slug)
	case state.RemarkThanks:
		return true
	}
	return false
}

// heard reports whether the agent may see comments by a person or a bot; GitHub is asked for each
// person once per round. Bots have no permission on GitHub: only listed ones are heard.
func (s *Steps) heard(ctx context.Context, w *step.Attempt, who state.Person, known map[int64]bool) (bool, error) {
	if ok, asked := known[who.ID]; asked {
		return ok, nil
	}
	if who.Bot {
		return trust.ListedBot(slices.Concat(s.AllowBots, w.Task.Settings.AllowBots), who), nil
	}
	listed := slices.Concat(s.AllowUsers, w.Task.Settings.AllowUsers)
	if slices.ContainsFunc(listed, func(l string) bool { return strings.EqualFold(l, who.Login) }) {
		return who.ID != 0, nil
	}
	if who.ID == 0 {
		return false, nil
	}
	p, err := s.permission(ctx, w, who)
	if err != nil {
		return false, fmt.Errorf("read the permission of @%s: %w", who.Login, err)
	}
	known[who.ID] = p.CanWrite()
	return known[who.ID], nil
}

// dcoName matches the names of checks that require a sign-off, such as DCO, "DCO / check" and signed-off-by.
var dcoName = regexp.MustCompile(`(?i)(^|[^a-z])dco([^a-z]|$)|developer certificate of origin|sign(ed)?[- _]?off`)

// GitHub may show a pull request with its old head for a few seconds after a push. So it is read again soon a few times, and then now and
// then.
const (
	staleGap   = 10 * time.Second
	staleReads = 5
)

// A webhook that says what became of a check can be lost, or come before GitHub shows it. So undecided checks are read again without one, after
// times that double from ChecksQuiet on.
const maxDoublings = 5

// How long errand waits for checks that are not complete or not reported, in times of ChecksQuiet: an hour if others have failed by then,
// otherwise six hours, after which GitHub Actions stops a job.
const (
	patienceFailed  = 30
	patiencePending = 180
)

// decisionDue returns when errand does not wait any longer for checks that are not complete or not reported; zero if there are none, or if it
// has just noticed them.
func (s *Steps) decisionDue(pr *state.PR, v green.Verdict) time.Time {
	if len(v.Pending) == 0 || pr.Undecided.IsZero() {
		return time.Time{}
	}
	patience := patiencePending * s.ChecksQuiet
	if len(v.Failed) > 0 {
		patience = patienceFailed * s.ChecksQuiet
	}
	return pr.Undecided.Add(patience)
}

// Checks reads the checks of the published head, and decides whether it is green. Another head is not judged: either GitHub will show this
// one in a moment, or a webhook will say that it is the pull request's.
func (s *Steps) Checks(ctx context.Context, w *step.Attempt) (event.Event, error) {
	head := w.Task.Branch.Head
	if pr := w.Task.PR; pr == nil || pr.State != state.PROpen || head == "" || w.Task.Ended() {
		return step.Done(), nil
	}
	report, err := s.GitHub.Checks(ctx, w.Repo, w.Task.PR.Number, head)
	if err != nil {
		return event.Event{}, fmt.Errorf("read the checks: %w", err)
	}
	if report.Head != head {
		again := s.Now().Add(staleGap)
		if w.Job.Args.Reads >= staleReads {
			again = s.Now().Add(s.ChecksQuiet)
		}
		return event.Event{Payload: event.ChecksRead{Head: head, Stale: true, Again: again, Reads: w.Job.Args.Reads}}, nil
	}
	v := green.Judge(report, s.Now(), s.ChecksQuiet)
	read := event.ChecksRead{Head: head, Reason: v.Reason, Optional: v.Optional, Again: v.Again}
	undecided := v.State == green.Pending || v.State == green.Unknown || v.State == green.Failure && !v.Settled
	if v.Again.IsZero() && undecided {
		read.Again, read.Reads = s.Now().Add(s.ChecksQuiet<<min(w.Job.Args.Reads, maxDoublings)), w.Job.Args.Reads
	}
	if v.State != green.None {
		read.Checks = string(v.State)
	}
	read.Settled, read.Pending, read.Flaky = v.Settled, len(v.Pending) > 0, flaky(w.Task, report)
	if due := s.decisionDue(w.Task.PR, v); !due.IsZero() && !s.Now().Before(due) {
		read.Settled = true
	} else if !due.IsZero() && due.Before(read.Again) {
		read.Again = due
	}
	read.DCO = slices.ContainsFunc(v.Failing, func(c green.Check) bool { return dcoName.MatchString(c.Name) })
	return event.Event{Payload: read}, nil
}

// Closed returns how the issue was closed: by a merge of the pull request, which closes the issue too, or by a person.
func (s *Steps) Closed(ctx context.Context, w *step.Attempt) (event.Event, error) {
	pr, err := s.GitHub.PR(ctx, w.Repo, w.Task.PR.Number)
	if err != nil {
		return event.Event{}, fmt.Errorf("read the pull request: %w", err)
	}
	if pr.Merged {
		return event.Event{At: pr.ClosedAt, Payload: event.PRClosed{Merged: true}}, nil
	}
	i, err := s.GitHub.Issue(ctx, w.Repo, w.Task.Key.Issue)
	if err != nil {
		return event.Event{}, fmt.Errorf("read the issue: %w", err)
	}
	if !i.Closed {
		return step.Done(), nil
	}
	return event.Event{Via: event.ViaConfirmed, At: i.ClosedAt, Payload: event.IssueClosed{}}, nil
}

// PRClosed compares the pull request with the one that the task knows, a while after webhooks said that it was closed, or reopened:
// they may have come in the wrong order. If they agree, the result is the job's own event.
func (s *Steps) PRClosed(ctx context.Context, w *step.Attempt) (event.Event, error) {
	known := w.Task.PR
	pr, err := s.GitHub.PR(ctx, w.Repo, known.Number)
	switch {
	case err != nil && w.Job.Try() < 3:
		return event.Event{}, fmt.Errorf("read the pull request: %w", err)
	case err != nil:
		w.Log.Warn().Err(err).Msg("failed to read whether the pull request is still closed")
	case pr.Merged:
		return event.Event{By: pr.MergedBy, At: pr.ClosedAt, Payload: event.PRClosed{Merged: true}}, nil
	case pr.Open && known.State == state.PRClosed:
		return event.Event{At: pr.UpdatedAt, Payload: event.PRReopened{Number: pr.Number, Head: pr.Head}}, nil
	case !pr.Open && known.State == state.PROpen:
		return event.Event{At: pr.ClosedAt, Payload: event.PRClosed{}}, nil
	}
	return event.Event{Payload: event.NewDue(w.Job.Args.Due, w.Job.Args.Key)}, nil
}
