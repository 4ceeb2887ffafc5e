package crash

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/state"
)

// progress is how far a task is.
type progress int

const (
	untouched progress = iota
	planning           // its agent plans
	planned            // the preliminary plan waits for approval
	detailed           // the plan waits for approval
	working            // its agent works
	opened             // its pull request waits for a review
	answering          // people have reviewed it
	answered           // its agent has answered the review
	over
)

// subject is an issue with the person who looks after its task.
type subject struct {
	person
	title, body string
	canceled    bool // it ends by `cancel`, otherwise by the merge
	until       progress
	reviewed    bool
	failed      time.Time      // when the failure happened after which it was retried
	plan        int64          // the comment with its newest plan
	ended       bool           // the person has canceled or merged
	liked       map[int64]bool // plans with a 👍
}

// open opens the issue and assigns it.
func (s *subject) open() error {
	i, err := s.ada().OpenIssue(demo.Full, simgithub.NewIssue{Title: s.title, Body: s.body})
	if err != nil {
		return err
	}
	s.issue, s.liked = i.Number, map[int64]bool{}
	return s.ada().Assign(demo.Full, s.issue, demo.Machine)
}

// stageOf returns how far a task is; nil is a task that has not begun.
func (s *subject) stageOf(t *state.Task) progress {
	posted := t != nil && t.NewestPlan() != nil && t.NewestPlan().Posted()
	if posted {
		s.plan = t.NewestPlan().Comment
	}
	switch {
	case t == nil:
		return untouched
	case t.Ended():
		return over
	case t.Phase == state.PhasePreliminaryPlanning && t.Run != nil && t.Run.Session != "":
		return planning
	case t.Phase == state.PhaseAwaitingPreliminaryApproval && posted:
		return planned
	case t.Phase == state.PhaseAwaitingPlanApproval && posted:
		return detailed
	case t.Phase == state.PhaseImplementing && t.Run != nil && t.Run.Session != "":
		return working
	case t.Phase == state.PhasePROpen && t.PR != nil:
		s.pull = t.PR.Number
		if s.hasAnswers() {
			return answered
		}
		return opened
	case t.Phase == state.PhaseAddressingReview:
		return answering
	}
	return untouched
}

// hasAnswers reports whether errand has answered the review.
func (s *subject) hasAnswers() bool {
	i, err := s.ada().Issue(demo.Full, s.pull)
	return err == nil && i.Pull != nil && len(i.Pull.Threads) > 0 && !slices.ContainsFunc(i.Pull.Threads, func(th *simgithub.Thread) bool { return len(th.Comments) < 2 })
}

// act does what a person does next, unless the task is as far as it should be. It is called repeatedly.
func (s *subject) act(t *state.Task) error {
	now := s.stageOf(t)
	switch {
	case now >= s.until || s.ended:
	case t != nil && t.Phase == state.PhaseFailed && t.End != nil && !t.End.At.Equal(s.failed):
		s.failed = t.End.At
		return s.retry(t)
	case s.canceled && s.until == over && now >= planning:
		s.ended = true
		_, err := s.ada().Comment(demo.Full, s.issue, "@errand cancel")
		return err
	case now == planned || now == detailed:
		if !s.liked[s.plan] {
			s.liked[s.plan] = true
			return s.ada().React(demo.Full, s.plan, "+1")
		}
	case now == opened && !s.reviewed:
		v, err := s.ada().PullView(demo.Full, s.pull)
		if err != nil {
			return err
		}
		s.reviewed = true
		_, err = s.ada().Review(demo.Full, s.pull, simgithub.NewReview{Event: "REQUEST_CHANGES", Comments: []simgithub.NewReviewComment{
			{Path: v.Files[0].Path, Line: 1, Body: "Why a number?"}, {Path: v.Files[0].Path, Line: 1, Body: "And why this one?"},
		}})
		return err
	case now == answered && s.until == over:
		s.ended = true
		return s.ada().Merge(demo.Full, s.pull, simgithub.Merge{})
	}
	return nil
}

// retry does what the comment on a restored task says whose branch has commits that the backup does not know, and no pull request: it
// makes room for the task's own branch.
func (s *subject) retry(t *state.Task) error {
	fmt.Fprintf(s.life.log, "FAILED #%d: %s\n", s.issue, t.End.Reason)
	if repo, _ := s.life.world.GitHub.Snapshot().Repo(demo.Full); t.PR == nil && repo.Git.Branch(t.Branch.Name) != "" {
		if err := s.ada().DeleteBranch(demo.Full, t.Branch.Name); err != nil {
			return err
		}
	}
	_, err := s.ada().Comment(demo.Full, s.issue, "@errand retry")
	return err
}

// reach lets people act until the tasks are at least as far as stated.
func (l *load) reach(ctx context.Context, what string, until map[*subject]progress) error {
	for s, progress := range until {
		s.until = progress
	}
	var behind string
	err := l.life.until(ctx, what, func() (bool, error) {
		if l.disturb != nil {
			if err := l.disturb(ctx); err != nil {
				return false, err
			}
		}
		behind = ""
		for _, s := range l.subjects {
			t, err := l.world.Server.Store().Task(ctx, state.TaskKey{Repo: l.repo, Issue: s.issue})
			if err != nil {
				return false, err
			}
			if err := s.act(t); err != nil {
				return false, fmt.Errorf("#%d: %w", s.issue, err)
			}
			if now := s.stageOf(t); now < s.until {
				behind += fmt.Sprintf(" #%d %s is at %d of %d", s.issue, s.title, now, s.until)
				if t != nil {
					behind += fmt.Sprintf(" (%s, waiting %+v, question %+v)", t.Phase, t.Waiting, t.Question)
				}
			}
		}
		return behind == "", nil
	})
	if err != nil {
		err = fmt.Errorf("%w:%s", err, behind)
	}
	return err
}

// chatter is a stream of comments by a user without write access, on an issue without a task and on those with one.
type chatter struct {
	mu     sync.Mutex // held while a comment is written
	said   atomic.Int64
	cancel context.CancelFunc
	ended  chan error
}

// chat lets somebody comment until stop is called.
func (l *load) chat(ctx context.Context, every time.Duration) error {
	eve := l.world.GitHub.As(demo.Outsider)
	i, err := eve.OpenIssue(demo.Full, simgithub.NewIssue{Title: "Small talk"})
	if err != nil {
		return err
	}
	issues := []int{i.Number}
	for _, s := range l.subjects {
		issues = append(issues, s.issue)
	}
	ctx, cancel := context.WithCancel(ctx)
	l.chatter.cancel, l.chatter.ended = cancel, make(chan error, 1)
	go func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for n := range 100_000 {
			select {
			case <-ctx.Done():
				l.chatter.ended <- nil
				return
			case <-tick.C:
			}
			issue := issues[0]
			if n%8 == 7 {
				issue = issues[n/8%len(issues)]
			}
			err := l.chatter.say(func() error {
				_, err := eve.Comment(demo.Full, issue, fmt.Sprintf("I have this problem, too (%d).", n))
				return err
			})
			if err == nil && n%10 == 9 { // not faster than errand can receive webhooks here
				err = l.world.GitHub.WaitHooks(ctx)
			}
			if err != nil && ctx.Err() == nil {
				l.chatter.ended <- err
				return
			}
		}
		l.chatter.ended <- nil
	}()
	return nil
}

// say writes a comment.
func (c *chatter) say(write func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.said.Add(1)
	return write()
}

// delivered waits until all webhooks are delivered. Nobody comments meanwhile.
func (l *load) delivered(ctx context.Context) error {
	l.chatter.mu.Lock()
	defer l.chatter.mu.Unlock()
	return l.world.GitHub.WaitHooks(ctx)
}

// chatFurther waits until the next few comments are written.
func (l *load) chatFurther(ctx context.Context) error {
	from := l.chatter.said.Load()
	return l.life.until(ctx, "comments", func() (bool, error) { return l.chatter.said.Load() >= from+5, nil })
}

// silence ends the chat, if there is one.
func (l *load) silence() error {
	if l.chatter.cancel == nil {
		return nil
	}
	l.chatter.cancel()
	return <-l.chatter.ended
}
