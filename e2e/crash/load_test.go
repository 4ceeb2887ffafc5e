package crash

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/sim/simmodel"
	"github.com/errand-bot/errand/state"
)

// load is a life with several tasks in different phases, and webhooks all the time.
type load struct {
	*life
	url      string
	socket   *socket
	repo     int64
	subjects []*subject
	chatter  chatter
	backups  []saved
	unknown  map[string]int              // VMs of which the restored store does not know, with the number of attempts to create VMs until then
	disturb  func(context.Context) error // called between two actions of people; may be nil
	troubles int                         // by disturbAtRandom
	asked    bool                        // somebody has asked for the status

	inPlan, waits, works, inReview, late *subject
}

// saved is a backup, and how many VMs errand had tried to create before.
type saved struct {
	file  string
	tried int
}

// loadRules are the model's answers: like a careful agent, it does not repeat work that is on its branch.
const loadRules = `rules:
  - name: held plan
    step: preliminary_plan
    match: Hold the plan
    turns:
      - bash: ["git log -1"]
      - wait: plan
        text: |
          A number is needed.

          ~~~errand
          {"outcome":"build","title":"Add a number","summary":"One file."}
          ~~~
  - name: plan
    step: preliminary_plan
    turns:
      - text: |
          A number is needed.

          ~~~errand
          {"outcome":"build","title":"Add a number","summary":"One file."}
          ~~~
  - name: detailed plan
    step: plan
    turns:
      - text: |
          1. Add a file with a number.

          ~~~errand
          {"outcome":"build","title":"Add a number","summary":"One file."}
          ~~~
  - name: held work
    step: implement
    match: Hold the work
    turns:
      - bash: ["git log -1 --format=%s | grep -qx 'Add a number' || { n=$(date +%N); echo $n > work-$n.txt; git add -A; git commit -qm 'Add a number'; }"]
      - wait: work
        text: |
          It has a number.

          ~~~errand
          {"outcome":"done","title":"Add a number","summary":"One file."}
          ~~~
  - name: work
    step: implement
    turns:
      - bash: ["git log -1 --format=%s | grep -qx 'Add a number' || { n=$(date +%N); echo $n > work-$n.txt; git add -A; git commit -qm 'Add a number'; }"]
      - text: |
          It has a number.

          ~~~errand
          {"outcome":"done","title":"Add a number","summary":"One file."}
          ~~~
  - name: review
    step: review
    turns:
      - bash: ["git log -1 --format=%s | grep -q 'Take the review in' || { n=$(date +%N); echo $n > review-$n.txt; git add -A; git commit -qm 'Take the review in'; }; git rev-parse HEAD"]
      - text: |
          Taken in.

          ~~~errand
          {"outcome":"done","summary":"Taken in.","threads":[{{range $i, $id := findAll "(?m)^### .*?(thread:\\d+:\\d+)" .Prompt}}{{if $i}},{{end}}{"id":{{json $id}},"answer":{{json (printf "An answer to %s." $id)}},"commit":{{json (trim $.Last)}}}{{end}}]}
          ~~~
`

// TestLoad: while tasks are in different phases and webhooks arrive all the time, errand is restarted, its webhook secret and its tether
// key are replaced, and it is backed up; then it loses its data, and is restored from a backup. No webhook is lost, and nothing is done
// twice.
func TestLoad(t *testing.T) {
	t.Parallel()
	if err := playLoad(t, "limits: {vms: 8}", (*load).play); err != nil {
		t.Error(err)
	}
}

// playLoad plays a life with the section limits of errand's configuration, and checks its outcome.
func playLoad(t *testing.T, limits string, play func(*load, context.Context) error) error {
	s, port := newScript(), &socket{}
	s.quicken()
	s.timing.CatchUp = 3 * time.Minute // after a failure, errand reads GitHub again sooner than in production
	s.byHand = true                    // the clock does not skip, since all tasks would have to wait
	if s.settings = strings.Replace(s.settings, "limits: {vms: 1}", limits, 1); !strings.Contains(s.settings, limits) {
		return errors.New("the configuration has no limits to replace")
	}
	s.listen = port.listen
	err := playInWorld(t.Context(), t, s, func(ctx context.Context, life *life) error {
		l := &load{life: life, socket: port, url: life.world.URL, unknown: map[string]int{}}
		for _, step := range []func(context.Context) error{
			func(ctx context.Context) error { return play(l, ctx) },
			func(context.Context) error { return l.silence() },
			l.judge,
		} {
			if err := step(ctx); err != nil {
				return err
			}
		}
		t.Logf("PROOF: load: %d webhooks and %d backups: none was lost, nothing was done twice", len(l.world.GitHub.Deliveries()), len(l.backups))
		return nil
	})
	return errors.Join(err, port.close())
}

// play gets each task into another phase, makes a backup, and loses what happens afterwards.
func (l *load) play(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		func(ctx context.Context) error { return l.prepareAll(ctx, 40*time.Millisecond) },
		l.calm, l.backUp, l.forgotten,
		func(ctx context.Context) error { return l.loseAndRestore(ctx, l.backups[len(l.backups)-1]) },
		l.finish,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// finish lets all tasks end.
func (l *load) finish(ctx context.Context) error {
	l.world.Model.Release("plan")
	l.world.Model.Release("work")
	until := map[*subject]progress{}
	for _, s := range l.subjects {
		until[s] = over
	}
	return l.reach(ctx, "the end", until)
}

// prepareAll opens an issue for each phase, and lets somebody comment.
func (l *load) prepareAll(ctx context.Context, every time.Duration) error {
	l.inPlan, l.waits = &subject{title: "Hold the plan", canceled: true}, &subject{title: "A plan that waits"}
	l.works, l.inReview = &subject{title: "Hold the work"}, &subject{title: "A review"}
	if err := l.prepare(l.inPlan, l.waits, l.works, l.inReview); err != nil {
		return err
	}
	return l.chat(ctx, every)
}

// prepare sets the model's answers and opens issues.
func (l *load) prepare(subjects ...*subject) error {
	rules, err := simmodel.ParseScript([]byte(strings.ReplaceAll(loadRules, "~~~", "```")))
	if err != nil {
		return err
	}
	if err := l.world.Model.SetScript(rules); err != nil {
		return err
	}
	// No checks of the work: each would be another run.
	_, err = l.world.GitHub.As(demo.Maintainer).PushCommit(demo.Full, simgithub.Commit{Branch: "main", Message: "No settings", Files: map[string]string{".errand.yml": "# none\n"}})
	if err != nil {
		return err
	}
	repo, _ := l.world.GitHub.Snapshot().Repo(demo.Full)
	l.repo = repo.ID
	for _, s := range subjects {
		if err := l.add(s); err != nil {
			return err
		}
	}
	return nil
}

func (l *load) add(s *subject) error {
	s.life = l.life
	l.subjects = append(l.subjects, s)
	return s.open()
}

// calm restarts errand in order, and replaces its keys, while the tasks get to their phases: each webhook is answered with success.
func (l *load) calm(ctx context.Context) error {
	before := len(l.world.GitHub.Deliveries())
	for _, step := range []func() error{
		func() error { return l.restart(ctx) },
		func() error { return l.rotateSecret(ctx) },
		func() error { return l.backUp(ctx) },
		func() error {
			return l.reach(ctx, "the phases", map[*subject]progress{l.inPlan: planning, l.waits: planned, l.works: working, l.inReview: opened})
		},
		func() error { return l.rotateTetherKey(ctx) },
		func() error { return l.chatFurther(ctx) },
		func() error { return l.delivered(ctx) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	for _, d := range l.world.GitHub.Deliveries()[before:] {
		if d.StatusCode != 200 && d.Status != "timed out" { // on a slow machine a restart takes longer than GitHub waits
			return fmt.Errorf("webhook %s (%s) was answered with %d %s", d.Event, d.GUID, d.StatusCode, d.Status)
		}
	}
	return nil
}

// forgotten lets happen what the backup does not know, with a crash on the way.
func (l *load) forgotten(ctx context.Context) error {
	l.late = &subject{title: "Another one", canceled: true}
	if err := l.add(l.late); err != nil {
		return err
	}
	l.world.Model.Release("work")
	if err := l.chatFurther(ctx); err != nil {
		return err
	}
	l.gate.kill()
	return l.reach(ctx, "what the backup does not know", map[*subject]progress{l.late: planned, l.waits: answered, l.works: opened, l.inReview: answered})
}

// loseAndRestore loses all of errand's data, restores a backup after a while, and lets the operator resume errand.
func (l *load) loseAndRestore(ctx context.Context, b saved) error {
	if err := l.lose(); err != nil {
		return err
	}
	for _, name := range l.script.tried.list[b.tried:] {
		l.unknown[name] = l.script.tried.len()
	}
	if !l.asked { // a webhook that fails; two answers within a minute would have the same text
		l.asked = true
		if _, err := l.waits.ada().Comment(demo.Full, l.waits.issue, "@errand status"); err != nil {
			return err
		}
	}
	said, waited := l.chatter.said.Load(), time.Now()
	for l.chatter.said.Load() < said+5 && ctx.Err() == nil && time.Since(waited) < patience {
		pauseFor(10 * time.Millisecond)
	}
	if err := l.restore(ctx, b.file); err != nil {
		return err
	}
	writes := l.writes()
	if err := l.chatFurther(ctx); err != nil {
		return err
	}
	if now := l.writes(); now != writes {
		return fmt.Errorf("the restored errand changed %d things before `errand resume`", now-writes)
	}
	return l.resume(ctx)
}

// judge waits until errand has nothing left to do, and returns everything that is wrong.
func (l *load) judge(ctx context.Context) error {
	if err := l.hearsAll(ctx); err != nil { // what they lead to belongs to the outcome
		return err
	}
	var ends []string
	o, err := l.outcomeOf(ctx, len(l.subjects), func(o *outcome, t *state.Task) {
		o.ofTask(t)
		ends = append(ends, fmt.Sprintf("#%d %s", t.Key.Issue, t.Phase))
	})
	if err != nil {
		return err
	}
	given, err := l.vanished(ctx)
	if err != nil {
		return err
	}
	o.Wrong = slices.DeleteFunc(o.Wrong, func(w string) bool {
		name, isBox := strings.CutPrefix(strings.TrimSuffix(w, " is left"), "box ")
		_, unknown := l.unknown[name]
		return isBox && (given[name] || unknown) // errand never deletes those, since they may have work
	})
	o.Wrong = append(o.Wrong, l.twice()...)
	if err := l.hearsAll(ctx); err != nil {
		o.Wrong = append(o.Wrong, err.Error())
	}
	var want []string
	merged := 0
	for _, s := range l.subjects {
		if s.canceled {
			want = append(want, fmt.Sprintf("#%d cancelled", s.issue))
		} else {
			want, merged = append(want, fmt.Sprintf("#%d done", s.issue)), merged+1
		}
	}
	if !slices.Equal(ends, want) {
		o.Wrong = append(o.Wrong, fmt.Sprintf("the tasks ended as %q, want %q", ends, want))
	}
	work := 0
	for _, message := range o.Branch {
		if strings.HasPrefix(message, "Add a number") {
			work++
		}
	}
	if work != merged || len(o.Branch) != 2*merged {
		o.Wrong = append(o.Wrong, fmt.Sprintf("got the commits %q in pull requests, want two in each: the work, and what the review asked for", o.Branch))
	}
	if len(o.Pulls) != merged {
		o.Wrong = append(o.Wrong, fmt.Sprintf("got the pull requests %q, want %d", o.Pulls, merged))
	}
	if len(o.Wrong) > 0 {
		return fmt.Errorf("wrong:\n%s", strings.Join(o.Wrong, "\n"))
	}
	return nil
}

// twice lists a run that was started twice, and the VMs whose name was used again after a restoration.
func (l *load) twice() (wrong []string) {
	if err := l.script.started.twice(); err != nil {
		wrong = append(wrong, err.Error())
	}
	for name, until := range l.unknown {
		if slices.Contains(l.script.tried.list[until:], name) {
			wrong = append(wrong, "the name of VM "+name+" was used again after a restoration")
		}
	}
	return wrong
}

// hearsAll waits until errand knows all webhooks: those that GitHub could not deliver, because errand was dead for example, it fetches a
// moment later.
func (l *load) hearsAll(ctx context.Context) error {
	var lost []string
	err := l.life.until(ctx, "all webhooks", func() (bool, error) {
		err := l.world.GitHub.WaitHooks(ctx)
		if err == nil {
			lost, err = l.lostWebhooks(ctx)
		}
		return len(lost) == 0, err
	})
	if err != nil && len(lost) > 0 {
		err = fmt.Errorf("%w:\n%s", err, strings.Join(lost, "\n"))
	}
	return err
}

// lostWebhooks lists the webhooks that errand does not know, however GitHub's attempts to deliver them ended.
func (l *load) lostWebhooks(ctx context.Context) (lost []string, err error) {
	for _, d := range l.world.GitHub.Deliveries() {
		known, err := l.world.Server.Store().HasDelivery(ctx, d.GUID)
		if err != nil {
			return nil, err
		}
		if !known {
			lost = append(lost, fmt.Sprintf("webhook %s %s (%s), answered with %d, is lost", d.Event, d.Action, d.GUID, d.StatusCode))
		}
	}
	return lost, nil
}
