package crash

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/state"
)

// outcome is the part of a life's end that must be the same wherever errand died.
type outcome struct {
	Issue    string
	Phases   []string // of the task, in order
	Pulls    []string
	Plans    []string
	Comments []string // by the bot, including threads; first lines
	Runs     []string
	Said     []string // the agent's calls of errand's tools
	Branch   []string // messages of the pull request's commits
	Wrong    []string // violations of invariants
}

// outcome waits until errand has nothing left to do and returns the outcome of the demo's life.
func (l *life) outcome(ctx context.Context) (outcome, error) {
	return l.outcomeWith(ctx, func(o *outcome, t *state.Task) {
		o.ofTask(t)
		o.ofAgents(t)
		o.Wrong = append(o.Wrong, chargeErrors(t, l.faults())...)
		o.Wrong = append(o.Wrong, billErrors(t, l.world.Model.Requests(), l.faults(), l.lostAnswers())...)
	})
}

// outcomeWith waits until errand has nothing left to do and returns a life's outcome, with what read finds in its task.
func (l *life) outcomeWith(ctx context.Context, read func(*outcome, *state.Task)) (outcome, error) {
	return l.outcomeOf(ctx, 1, read)
}

// outcomeOf is outcomeWith for a life with several tasks.
func (l *life) outcomeOf(ctx context.Context, want int, read func(*outcome, *state.Task)) (outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := l.settle(ctx); err != nil {
		return outcome{}, err
	}
	sn := l.world.GitHub.Snapshot()
	repo, ok := sn.Repo(demo.Full)
	if !ok {
		return outcome{}, errors.New("the repository is gone")
	}
	tasks, err := l.world.Server.Store().AllTasks(ctx, state.TaskKey{}, 10)
	if err != nil {
		return outcome{}, err
	}
	if len(tasks) != want {
		return outcome{}, fmt.Errorf("got %d tasks, want %d", len(tasks), want)
	}
	o := outcome{}
	for _, t := range tasks {
		read(&o, t)
	}
	if err := o.ofGitHub(l, repo); err != nil {
		return o, err
	}
	bad, err := l.world.Server.Store().Check(ctx)
	if err != nil {
		return o, err
	}
	o.Wrong = append(o.Wrong, bad...)
	poison, err := l.world.Server.Store().PoisonDeliveries(ctx, 10)
	if err != nil {
		return o, err
	}
	for _, d := range poison {
		o.Wrong = append(o.Wrong, "a delivery was set aside: "+d.Event+" "+d.GUID)
	}
	panics, err := l.panics()
	if err != nil {
		return o, err
	}
	o.Wrong = append(o.Wrong, panics...)
	boxes, err := l.boxes()
	o.Wrong = append(o.Wrong, boxes...)
	return o, err
}

// ofTask reads the outcome from the store.
func (o *outcome) ofTask(t *state.Task) {
	for _, h := range t.History {
		o.Phases = append(o.Phases, string(h.Phase))
	}
	for _, p := range t.Plans {
		o.Plans = append(o.Plans, fmt.Sprintf("%s %d posted=%v stale=%q superseded=%v", p.Kind, p.Revision, p.Posted(), p.Stale, p.Superseded))
	}
	for _, r := range t.Runs {
		o.Runs = append(o.Runs, fmt.Sprintf("%s %s %s", r.Kind, r.State, r.Status))
	}
	if t.VM != nil {
		o.Wrong = append(o.Wrong, "the ended task has VM "+t.VM.Name)
	}
	if t.Run != nil {
		o.Wrong = append(o.Wrong, "the ended task has run "+t.Run.ID)
	}
}

// ofAgents reads the agent's calls of errand's tools, and the approval of its plan, from the store.
func (o *outcome) ofAgents(t *state.Task) {
	for _, n := range t.Notes {
		o.Said = append(o.Said, fmt.Sprintf("%s: %s", n.Kind, n.Text))
	}
	for _, p := range t.Proposed {
		o.Said = append(o.Said, fmt.Sprintf("%d: %s", p.N, p.Title))
	}
	if len(o.Said) != 2 {
		o.Wrong = append(o.Wrong, fmt.Sprintf("the agent made two tool calls, but stored are %q", o.Said))
	}
	if a := t.Approval; a == nil || a.By.Login != demo.Maintainer || a.Kind != state.PlanThorough {
		o.Wrong = append(o.Wrong, fmt.Sprintf("unexpected effective approval %+v", a))
	}
}

// marker matches the hidden marker of a comment.
var marker = regexp.MustCompile(`<!-- errand:([^ ]+) -->`)

// ofGitHub reads the outcome from GitHub.
func (o *outcome) ofGitHub(l *life, repo *simgithub.Repo) error {
	var list []int
	for n := range repo.Issues {
		list = append(list, n)
	}
	slices.Sort(list)
	for _, n := range list {
		i := repo.Issues[n]
		texts, marks := map[string]bool{}, map[string]bool{}
		see := func(what, author, body string) {
			if author != l.world.GitHub.App().BotLogin {
				return
			}
			mark := marker.FindString(body)
			text := strings.TrimSpace(marker.ReplaceAllString(body, ""))
			said := text // the answers in two threads may be the same
			if strings.HasPrefix(what, "thread ") {
				said = what + ": " + text
			}
			if mark == "" || marks[mark] {
				o.Wrong = append(o.Wrong, fmt.Sprintf("a comment on #%d has no marker or a repeated one (%s): %.200q", n, mark, text))
			} else if texts[said] {
				o.Wrong = append(o.Wrong, fmt.Sprintf("a comment on #%d repeats the text of another (%s): %.200q", n, mark, text))
			}
			marks[mark], texts[said] = true, true
			head, _, _ := strings.Cut(text, "\n")
			o.Comments = append(o.Comments, fmt.Sprintf("#%d %s: %s", n, what, constant(head)))
		}
		for _, c := range i.Comments {
			see("comment", c.Author, c.Body)
		}
		if i.Pull == nil {
			o.Issue = string(i.State)
			continue
		}
		for _, v := range i.Pull.Reviews {
			if v.State == simgithub.ReviewPending {
				o.Wrong = append(o.Wrong, fmt.Sprintf("a pending review by %s is left on #%d", v.Author, n))
			}
			see("review", v.Author, v.Body)
		}
		for k, th := range i.Pull.Threads {
			for _, c := range th.Comments {
				see(fmt.Sprintf("thread %d", k), c.Author, c.Body)
			}
		}
		o.Pulls = append(o.Pulls, fmt.Sprintf("#%d merged=%v by %s", n, i.Pull.Merged, i.Author))
		v, err := l.world.GitHub.As(demo.Maintainer).PullView(demo.Full, n)
		if err != nil {
			return err
		}
		for _, c := range v.Commits {
			o.Branch = append(o.Branch, c.Message)
		}
	}
	slices.Sort(o.Comments)
	return nil
}

// changing matches the parts of a comment's first line that differ between lives.
var changing = regexp.MustCompile(`[0-9]+ [A-Z][a-z]{2} [0-9]+:[0-9]+|[0-9a-f]{7,40}|\$?[0-9]+([.:][0-9]+)?( ?(s|ms|min))?`)

func constant(text string) string { return changing.ReplaceAllString(text, "…") }

// boxes lists the remaining sandboxes.
func (l *life) boxes() ([]string, error) {
	dir := filepath.Join(l.dir, "data", "local", "boxes")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var left []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue // created partially when errand was killed, so not a sandbox yet; the provider deletes it later
		}
		left = append(left, "box "+e.Name()+" is left")
	}
	return left, nil
}

// panics lists the panics in the log.
func (l *life) panics() ([]string, error) {
	data, err := os.ReadFile(l.log.Name())
	if err != nil {
		return nil, err
	}
	var found []string
	for line := range strings.Lines(string(data)) {
		if strings.Contains(line, "panic") {
			found = append(found, line)
		}
	}
	return found, nil
}

// settle waits until errand has nothing left to do.
func (l *life) settle(ctx context.Context) error {
	for calm := 0; calm < 3; {
		if err := l.tick(ctx); err != nil {
			return err
		}
		busy, err := l.busy(ctx)
		if err != nil {
			return err
		}
		if calm++; busy != "" {
			calm = 0
		}
		timer := time.NewTimer(30 * time.Millisecond)
		select {
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("errand is still busy: %s", busy)
		case <-timer.C:
		}
	}
	return nil
}

// busy returns something that is left to do, or "".
func (l *life) busy(ctx context.Context) (string, error) {
	if err := l.world.GitHub.WaitHooks(ctx); err != nil {
		return "", err
	}
	store := l.world.Server.Store()
	pending, err := store.PendingDeliveries(ctx, 1)
	if err != nil {
		return "", err
	}
	if len(pending) > 0 {
		return "delivery " + pending[0].Event, nil
	}
	calls, err := store.Reservations.All(ctx)
	if err != nil {
		return "", err
	}
	if len(calls) > 0 {
		return "booking a call of run " + calls[0].Run, nil
	}
	tasks, err := store.AllTasks(ctx, state.TaskKey{}, 10)
	if err != nil {
		return "", err
	}
	for _, t := range tasks {
		jobs, err := store.Jobs(ctx, t.Key)
		if err != nil {
			return "", err
		}
		for _, j := range jobs {
			if j.Kind != state.JobDue {
				return fmt.Sprintf("job %s: %s", j.Key, j.LastError), nil
			}
		}
	}
	return "", nil
}
