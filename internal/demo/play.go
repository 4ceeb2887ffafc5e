package demo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/clock"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/state"
)

// Play is the script of one person with one issue, from opening it to the merge.
type Play struct {
	World *World
	// Say is called for each step; Wait is called periodically while a step takes long.
	Say  func(format string, args ...any)
	Wait func(what string, since time.Duration)
	// Tick, if set, is called between two checks of the task. Tests restart errand there.
	Tick func(context.Context) error
	// Patience is the timeout of one step.
	Patience time.Duration

	issue   int
	pull    int
	session string // the agent's session before its VM was suspended
}

// Result is the summary of a play.
type Result struct {
	Issue, Pull int
	Comments    int // the bot's comments, including replies in threads
	Runs        int
	// Calls are the requests to GitHub's API for the task; Polls those that read reactions; Others those at startup and
	// in sweeps. Git are the VM's reads by the git protocol, which do not count towards the API's limits.
	Calls, Polls, Others, Git int
	Took                      time.Duration
}

// Run plays the whole script.
func (p *Play) Run(ctx context.Context) (Result, error) {
	begun := time.Now()
	steps := []func(context.Context) error{
		p.open, p.readPlan, p.askForChange, p.approvePreliminary, p.approveThorough, p.seePull, p.seeAsleep, p.review,
		p.seeAnswers, p.seeSession,
		p.approveAndMerge, p.seeEnd, p.seeNothingLeft,
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return Result{}, err
		}
	}
	r := Result{Issue: p.issue, Pull: p.pull, Took: time.Since(begun)}
	p.count(&r)
	for _, n := range []int{p.issue, p.pull} {
		i, err := p.ada().Issue(Full, n)
		if err != nil {
			return r, err
		}
		r.Comments += len(p.byBot(i))
		if i.Pull != nil {
			r.Comments += len(p.answers(i))
		}
	}
	t, err := p.task(ctx)
	if err != nil {
		return r, err
	}
	for _, run := range t.Runs {
		if run.Kind != state.RunCheck {
			r.Runs++
		}
	}
	return r, nil
}

// count collects the GitHub requests.
func (p *Play) count(r *Result) {
	f := p.World.Server.Forge()
	r.Calls, r.Polls = f.Calls(forge.ForTask), f.Calls(forge.ForPoll)
	r.Others = f.Calls(forge.ForStart) + f.Calls(forge.ForSweep)
	routes, _ := p.World.GitHub.Calls()
	for _, c := range routes {
		if strings.HasPrefix(c.Route, "git ") {
			r.Git += c.Count
		}
	}
}

// OpenAnother opens a second, unassigned issue for a person to continue with.
func (p *Play) OpenAnother() (number int, err error) {
	body, err := files.ReadFile("fixture/second.md.txt")
	if err != nil {
		return 0, fmt.Errorf("read the demo's second issue: %w", err)
	}
	i, err := p.ada().OpenIssue(Full, simgithub.NewIssue{Title: "Make slugs unique", Body: string(body)})
	if err != nil {
		return 0, err
	}
	return i.Number, nil
}

func (p *Play) ada() simgithub.Person { return p.World.GitHub.As(Maintainer) }

// open opens the issue and assigns it.
func (p *Play) open(context.Context) error {
	body, err := files.ReadFile("fixture/issue.md.txt")
	if err != nil {
		return fmt.Errorf("read the demo's issue: %w", err)
	}
	i, err := p.ada().OpenIssue(Full, simgithub.NewIssue{Title: "Slugs end in a hyphen when the title ends in punctuation", Body: string(body)})
	if err != nil {
		return err
	}
	p.issue = i.Number
	p.Say("@%s opened issue #%d and assigned it to @%s", Maintainer, p.issue, Machine)
	return p.ada().Assign(Full, p.issue, Machine)
}

func (p *Play) readPlan(ctx context.Context) error {
	c, err := p.plan(ctx, "preliminary", 1)
	if err != nil {
		return err
	}
	p.Say("@errand posted %s", title(c.Body))
	return nil
}

func (p *Play) askForChange(ctx context.Context) error {
	if _, err := p.ada().Comment(Full, p.issue, "Please do not trim afterwards: let the loop not write the hyphen in the first place."); err != nil {
		return err
	}
	p.Say("@%s asked for a change", Maintainer)
	c, err := p.plan(ctx, "preliminary", 2)
	if err != nil {
		return err
	}
	p.Say("@errand posted %s", title(c.Body))
	return nil
}

func (p *Play) approvePreliminary(ctx context.Context) error {
	c, err := p.plan(ctx, "preliminary", 2)
	if err != nil {
		return err
	}
	if err := p.ada().React(Full, c.ID, "+1"); err != nil {
		return err
	}
	p.Say("@%s gave it a 👍", Maintainer)
	t, err := p.plan(ctx, "thorough", 1)
	if err != nil {
		return err
	}
	p.Say("@errand posted the detailed plan: %s", title(t.Body))
	return nil
}

func (p *Play) approveThorough(ctx context.Context) error {
	c, err := p.plan(ctx, "thorough", 1)
	if err != nil {
		return err
	}
	p.Say("@%s gave it a 👍", Maintainer)
	return p.ada().React(Full, c.ID, "+1")
}

// seePull waits for the pull request.
func (p *Play) seePull(ctx context.Context) error {
	err := p.until(ctx, "the pull request", func(t *state.Task) (bool, error) {
		if t.PR != nil && t.Phase == state.PhasePROpen {
			p.pull = t.PR.Number
		}
		return p.pull != 0, nil
	})
	if err != nil {
		return err
	}
	v, err := p.ada().PullView(Full, p.pull)
	if err != nil {
		return err
	}
	p.Say("@errand opened pull request #%d: %d commit(s), %d file(s)", p.pull, len(v.Commits), len(v.Files))
	return nil
}

// review requests changes in two threads.
func (p *Play) review(context.Context) error {
	lines, err := p.lines()
	if err != nil {
		return err
	}
	_, err = p.ada().Review(Full, p.pull, simgithub.NewReview{Event: "REQUEST_CHANGES", Comments: []simgithub.NewReviewComment{
		{Path: "slug.go", Line: lines["slug.go"], Body: "Please keep the name `gap`; one letter says nothing."},
		{Path: "slug_test.go", Line: lines["slug_test.go"], Body: "Can you add the empty title, too?"},
	}})
	if err == nil {
		p.Say("@%s requested changes in two threads", Maintainer)
	}
	return err
}

// lines returns a changed line of each file to comment on.
func (p *Play) lines() (map[string]int, error) {
	i, err := p.ada().Issue(Full, p.pull)
	if err != nil {
		return nil, err
	}
	out := map[string]int{}
	for path, want := range map[string]string{"slug.go": "g := false", "slug_test.go": `"?!"`} {
		data, err := p.ada().File(Full, i.Pull.Head, path)
		if err != nil {
			return nil, err
		}
		for n, line := range strings.Split(string(data), "\n") {
			if strings.Contains(line, want) {
				out[path] = n + 1
			}
		}
	}
	return out, nil
}

// seeAnswers waits for the round's commit and a reply in each thread.
func (p *Play) seeAnswers(ctx context.Context) error {
	err := p.until(ctx, "the answers to the review", func(t *state.Task) (bool, error) {
		i, err := p.ada().Issue(Full, p.pull)
		if err != nil {
			return false, err
		}
		return len(p.answers(i)) >= 2 && t.Phase == state.PhasePROpen, nil
	})
	if err != nil {
		return err
	}
	v, err := p.ada().PullView(Full, p.pull)
	if err != nil {
		return err
	}
	p.Say("@errand pushed a commit (%d in all) and replied in both threads", len(v.Commits))
	return nil
}

func (p *Play) approveAndMerge(ctx context.Context) error {
	if _, err := p.ada().Review(Full, p.pull, simgithub.NewReview{Event: "APPROVE"}); err != nil {
		return err
	}
	p.Say("@%s approved", Maintainer)
	if err := p.until(ctx, "errand to see the approval", func(t *state.Task) (bool, error) { return t.PR.Ready, nil }); err != nil {
		return err
	}
	if err := p.ada().Merge(Full, p.pull, simgithub.Merge{}); err != nil {
		return err
	}
	p.Say("@%s merged pull request #%d", Maintainer, p.pull)
	return nil
}

// seeEnd waits until everything is cleaned up and the summary is posted.
func (p *Play) seeEnd(ctx context.Context) error {
	err := p.until(ctx, "the end", func(t *state.Task) (bool, error) {
		said := false
		for _, c := range t.Posted {
			said = said || c.Kind == string(state.PostEnded)
		}
		return t.Phase == state.PhaseDone && t.VM == nil && said && t.Status.Shown == t.Visible, nil
	})
	if err == nil {
		p.Say("@errand posted the summary and deleted the VM")
	}
	return err
}

// plan waits for a revision of a plan and returns its comment.
func (p *Play) plan(ctx context.Context, kind string, revision int) (*simgithub.Comment, error) {
	var found *simgithub.Comment
	err := p.until(ctx, fmt.Sprintf("the %s plan, revision %d", kind, revision), func(t *state.Task) (bool, error) {
		for _, plan := range t.Plans {
			if string(plan.Kind) != kind || plan.Revision != revision || !plan.Posted() {
				continue
			}
			i, err := p.ada().Issue(Full, p.issue)
			if err != nil {
				return false, err
			}
			for _, c := range i.Comments {
				if c.ID == plan.Comment {
					found = c
				}
			}
		}
		return found != nil, nil
	})
	return found, err
}

// task reads the task from errand's store.
func (p *Play) task(ctx context.Context) (*state.Task, error) {
	sn := p.World.GitHub.Snapshot()
	r, ok := sn.Repo(Full)
	if !ok {
		return nil, errors.New("the demo's repository is gone")
	}
	return p.World.Server.Store().Task(ctx, state.TaskKey{Repo: r.ID, Issue: p.issue})
}

// until waits for a state of the task, and fails with the reason if the task stops instead.
func (p *Play) until(ctx context.Context, what string, ok func(*state.Task) (bool, error)) error {
	begun := time.Now()
	told := begun
	for {
		if p.Tick != nil {
			if err := p.Tick(ctx); err != nil {
				return err
			}
		}
		t, err := p.task(ctx)
		if err != nil {
			return err
		}
		if t != nil {
			yes, err := ok(t)
			if yes || err != nil {
				return err
			}
			if t.Phase == state.PhaseFailed || t.Phase == state.PhaseCancelled {
				return fmt.Errorf("waiting for %s: the task is %s: %s", what, t.Phase, t.End.Reason)
			}
		}
		if time.Since(begun) > p.Patience {
			return fmt.Errorf("waiting for %s: nothing in %s", what, p.Patience)
		}
		if time.Since(told) > time.Second {
			told = time.Now()
			p.Wait(what, time.Since(begun))
		}
		if err := clock.Sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// byBot lists the bot's comments on an issue.
func (p *Play) byBot(i *simgithub.Issue) []*simgithub.Comment {
	var out []*simgithub.Comment
	for _, c := range i.Comments {
		if c.Author == p.World.GitHub.App().BotLogin {
			out = append(out, c)
		}
	}
	return out
}

// answers returns the bot's replies in review threads.
func (p *Play) answers(i *simgithub.Issue) []*simgithub.ReviewComment {
	var out []*simgithub.ReviewComment
	for _, th := range i.Pull.Threads {
		for _, c := range th.Comments {
			if c.Author == p.World.GitHub.App().BotLogin {
				out = append(out, c)
			}
		}
	}
	return out
}

// title returns a comment's first line without markup.
func title(body string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(body), "\n")
	return strings.Trim(line, "# *")
}
