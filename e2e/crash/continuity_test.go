package crash

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/internal/heavytest"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/state"
)

// TestContinuity kills errand, and lets calls fail, at every fifth failpoint of the jobs that reopen a pull request, continue it
// in the task's next life, and close it after a restart. The outcome is the same each time: one pull request, which is closed.
func TestContinuity(t *testing.T) {
	t.Parallel()
	playPlot(t, continuity, continued(), matches(`reopen|close_pr|pr_replaced|PATCH /pulls|GET /pulls/N$|updateRefs|heads`), fifth)
}

// TestHeavyContinuity is TestContinuity at every third failpoint since the pull request was opened.
func TestHeavyContinuity(t *testing.T) {
	t.Parallel()
	heavytest.Mark(t)
	playPlot(t, continuity, continued(), matches(``), third)
}

// These are the distances of the failpoints that the tests sample of a plot. They are odd, and most operations have four moments, so that
// each moment is among the failpoints.
const (
	third   = 3
	fifth   = 5
	seventh = 7
)

// playPlot plays the lives of a plot with every step-th failpoint of those whose operation matches.
func playPlot(t *testing.T, p plot, expected outcome, about func(p point) bool, step int) {
	t.Helper()
	want, all := record(t, p, expected)
	_, again := record(t, p, expected)
	all = slices.DeleteFunc(all, func(p point) bool { // the number of some calls depends on timing
		return !about(p) || !slices.Contains(again, p)
	})
	var points []point
	for i := 0; i < len(all); i += step {
		points = append(points, all[i])
	}
	c := &count{plot: p}
	g, ctx := errgroup.WithContext(t.Context())
	g.SetLimit(atOnce)
	few := min(perLife, max(1, len(points)/(len(moments(""))+1))) // so that the moments of an operation are in different lives
	for _, life := range distribute(points, few) {
		g.Go(func() error {
			c.play(ctx, t, life, want)
			return nil
		})
	}
	_ = g.Wait() // the functions return nil
	c.conclude(t, "crash, "+t.Name(), len(points))
}

// matches returns a function that reports whether the operation of a point matches a regular expression.
func matches(expr string) func(p point) bool {
	re := regexp.MustCompile(expr)
	return func(p point) bool { return re.MatchString(p.op) }
}

// continued returns the outcome of continuity, written by hand.
func continued() outcome {
	return outcome{
		Issue: "open",
		Phases: []string{
			"life 1:", "queued", "preliminary_planning", "awaiting_preliminary_approval", "planning", "awaiting_plan_approval", "implementing",
			"pr_open", "pr_closed", "pr_open", "cancelled",
			"life 2:", "queued", "pr_open",
			"life 3:", "queued", "preliminary_planning", "awaiting_preliminary_approval", "cancelled",
		},
		Pulls: []string{"#2 merged=false by errand[bot]"},
		Plans: []string{`preliminary 1 posted=true stale="" superseded=false`},
		Comments: []string{
			"#1 comment: ## Plan, revision … (`…`)",
			"#1 comment: ## Preliminary plan, revision … (`…`)",
			"#1 comment: ## Preliminary plan, revision … (`…`)",
			"#1 comment: ### Canceled",
			"#1 comment: ### Canceled",
			"#1 comment: @ada, the pull request [#…](http://….…:…/acme/slug/pull/…) is open: Leave no hyphen at the ends of a slug.",
			"#1 comment: The task was canceled",
			"#2 comment: **Provenance.** A signed statement of how these changes came about.",
			"#2 comment: The task was canceled",
			"#2 comment: This pull request was closed because `ada` restarted its task",
			"#2 comment: This pull request was closed without a merge, so nobody works on it now",
		},
		Runs:   []string{"preliminary_plan ended ok"},
		Branch: []string{"Leave no hyphen at the ends of a slug\n\nThe hyphen of a gap is written only when another word follows."},
	}
}

// continuity closes the pull request of a task and deletes its branch, lets errand reopen it, withdraws the assignment and renews
// it, and restarts the task, which is then canceled.
func continuity(ctx context.Context, l *life) (outcome, error) {
	p := &person{life: l}
	var phases []string
	note := func(t *state.Task) {
		phases = append(phases, fmt.Sprintf("life %d:", t.Gen))
		for _, h := range t.History {
			phases = append(phases, string(h.Phase))
		}
	}
	for _, step := range []func() error{
		func() error { return p.open(ctx) },
		func() error { return l.approve(ctx, p, firstPlan) },
		func() error { return l.approve(ctx, p, "## Plan, revision 1") },
		func() error {
			_, err := l.inPhase(ctx, 1, state.PhasePROpen)
			return err
		},
		func() error { return l.closeAndReopen(ctx, p) },
		func() error { return l.handOverAgain(ctx, p, note) },
		func() error { return l.restart(ctx, p, note) },
	} {
		if err := step(); err != nil {
			return outcome{}, err
		}
	}
	o, err := l.outcomeWith(ctx, func(o *outcome, t *state.Task) {
		note(t)
		o.ofTask(t)
		o.Phases = phases
		repo, _ := l.world.GitHub.Snapshot().Repo(demo.Full)
		for n, i := range repo.Issues {
			if i.Pull != nil && i.State == "open" {
				o.Wrong = append(o.Wrong, fmt.Sprintf("pull request #%d is open", n))
			}
		}
	})
	for i := range o.Comments {
		o.Comments[i], _, _ = strings.Cut(o.Comments[i], ". ") // the rest has a date
	}
	return o, err
}

// closeAndReopen closes the pull request for so long that errand announces how to continue, and deletes its branch.
func (l *life) closeAndReopen(ctx context.Context, p *person) error {
	if err := l.settle(ctx); err != nil {
		return err
	}
	l.script.from = l.script.operations()
	t, err := l.task(ctx)
	if err != nil {
		return err
	}
	p.pull = t.PR.Number
	if err := p.ada().Close(demo.Full, p.pull, ""); err != nil {
		return err
	}
	if t, err = l.inPhase(ctx, 1, state.PhasePRClosed); err != nil {
		return err
	}
	if err := p.ada().DeleteBranch(demo.Full, t.Branch.Name); err != nil {
		return err
	}
	l.script.clock.to(t.Since.Add(time.Minute))
	if err := l.commented(ctx, p.pull, "closed without a merge"); err != nil {
		return err
	}
	if _, err := p.ada().Comment(demo.Full, p.issue, "@errand retry"); err != nil {
		return err
	}
	_, err = l.inPhase(ctx, 1, state.PhasePROpen)
	return err
}

// handOverAgain withdraws the assignment and renews it.
func (l *life) handOverAgain(ctx context.Context, p *person, note func(*state.Task)) error {
	if err := p.ada().Unassign(demo.Full, p.issue, demo.Machine); err != nil {
		return err
	}
	t, err := l.inPhase(ctx, 1, state.PhaseCancelled)
	if err != nil {
		return err
	}
	note(t)
	if err := l.settle(ctx); err != nil {
		return err
	}
	l.script.clock.to(l.script.clock.now().Add(2 * time.Second)) // GitHub's times have seconds
	if err := p.ada().Assign(demo.Full, p.issue, demo.Machine); err != nil {
		return err
	}
	if t, err = l.inPhase(ctx, 2, state.PhasePROpen); err != nil {
		return err
	}
	note(t)
	return l.settle(ctx)
}

// restart restarts the task and cancels it when its first plan is posted.
func (l *life) restart(ctx context.Context, p *person, note func(*state.Task)) error {
	if _, err := p.ada().Comment(demo.Full, p.issue, "@errand restart"); err != nil {
		return err
	}
	if err := l.commented(ctx, p.pull, "restarted"); err != nil {
		return err
	}
	if _, err := l.inPhase(ctx, 3, state.PhaseAwaitingPreliminaryApproval); err != nil {
		return err
	}
	if _, err := l.comment(ctx, firstPlan); err != nil {
		return err
	}
	if _, err := p.ada().Comment(demo.Full, p.issue, "@errand cancel"); err != nil {
		return err
	}
	_, err := l.inPhase(ctx, 3, state.PhaseCancelled)
	return err
}

// approve gives the plan with a title a 👍 when it is posted.
func (l *life) approve(ctx context.Context, p *person, title string) error {
	body, err := l.comment(ctx, title)
	if err != nil {
		return err
	}
	i, err := p.ada().Issue(demo.Full, p.issue)
	if err != nil {
		return err
	}
	for _, c := range i.Comments {
		if c.Body == body {
			return p.ada().React(demo.Full, c.ID, "+1")
		}
	}
	return fmt.Errorf("the plan %q is gone", title)
}

// inPhase waits until the task is in a phase of a life.
func (l *life) inPhase(ctx context.Context, gen int, phase state.Phase) (t *state.Task, err error) {
	err = l.until(ctx, fmt.Sprintf("life %d to be %s", gen, phase), func() (bool, error) {
		t, err = l.task(ctx)
		return t != nil && t.Gen == gen && t.Phase == phase, err
	})
	return t, err
}

// commented waits for a comment by errand on an issue or a pull request.
func (l *life) commented(ctx context.Context, number int, text string) error {
	return l.until(ctx, fmt.Sprintf("a comment %q on #%d", text, number), func() (bool, error) {
		i, err := l.world.GitHub.As(demo.Maintainer).Issue(demo.Full, number)
		if err != nil {
			return false, err
		}
		return slices.ContainsFunc(i.Comments, func(c *simgithub.Comment) bool {
			return c.Author != demo.Maintainer && strings.Contains(c.Body, text)
		}), nil
	})
}

// operations returns the number of operations so far.
func (s *script) operations() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.order)
}
