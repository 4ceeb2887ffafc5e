package walk

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/settings"
)

// model checks errand's promises by the actions of people and errand's visible results. It knows nothing about errand's
// decisions.
type model struct {
	w        *world
	blind    bool // the model did not observe the walk's beginning, and checks nothing
	triggers []*trigger
	ends     []ending
	pullEnds []ending // pull requests that were merged or closed
	yeses    []*yes
	plans    map[string]*written // by token
	lives    map[state.TaskKey]*life
	approved map[string]bool // TASK KIND HASH of work that began with approval and may continue
	cost     map[string]int64
	caps     map[string]int64
	last     map[string]int64 // the cost of the newest answers, by task
	spoken   []*word
	messages []*message
	untold   map[string][]effect // by marker or branch
	looks    map[claimLook]time.Time
	writes   map[string]write1           // by task and key of the job
	shownAll map[state.TaskKey]time.Time // when an edit of the status comment that showed the complete state was stored
	sweep    *sweep
	good     map[conversation]time.Time // when the status comment was last complete and stored

	unread    map[int]time.Time       // since when sweeps cannot find an issue
	took      map[string]bool         // comments and reviews, by task
	outages   map[string]int          // consecutive outages, by life of a task
	explained map[state.TaskKey]int64 // the version of a task whose stop is visible to people
	kept      map[string]time.Time    // since when VMs are kept although another task waits for one; see checkQueue
	conflicts map[state.TaskKey]int   // consecutive rounds because of a conflict with the base
	updates   map[int64]updateOrder   // accepted commands to update a branch, by comment
	barred    []string                // markers of comments that GitHub permanently refused, which are not retried
}

// trigger is a person's action that starts a task.
type trigger struct {
	on      *issue
	by      *account
	at      time.Time
	used    bool      // it started a life
	dropped bool      // it was withdrawn, or the task was already active
	able    bool      // by had write access then
	seen    bool      // people can see errand's reaction
	retries bool      // it continues a canceled task, if it may
	inText  bool      // it is a mention in the text of the issue
	lost    bool      // its webhook was lost permanently, so that only a sweep finds it
	removed time.Time // when an edit removed the mention
}

// yes is a person's approval in any form.
type yes struct {
	by     *account
	at     time.Time
	on     *issue
	plan   *comment // for a 👍 or a tick
	hash   string   // for a command with a hash
	bare   bool     // for a command without a hash
	undone time.Time
	untold bool // its webhook was lost permanently, and no list of GitHub's has it
}

// ending is a person's action that ends a task.
type ending struct {
	on *issue
	at time.Time
}

// written is a plan as written by its agent.
type written struct {
	token string
	text  string // the version of the issue in its prompt
	kind  string
}

// life is the last known state of one life of a task.
type life struct {
	gen      int
	ended    bool
	endAct   time.Time
	byItself bool // ended without a person's action
	trigger  time.Time
	began    int // the newest life that did not continue the one before
	version  int64
	moved    time.Time
}

func newModel(w *world) *model {
	return &model{
		w: w, kept: map[string]time.Time{}, untold: map[string][]effect{}, looks: map[claimLook]time.Time{}, writes: map[string]write1{}, shownAll: map[state.TaskKey]time.Time{},
		unread: map[int]time.Time{}, took: map[string]bool{}, outages: map[string]int{}, explained: map[state.TaskKey]int64{},
		conflicts: map[state.TaskKey]int{}, updates: map[int64]updateOrder{},
		plans: map[string]*written{}, lives: map[state.TaskKey]*life{}, approved: map[string]bool{}, cost: map[string]int64{}, caps: map[string]int64{}, last: map[string]int64{},
	}
}

// Actions of people.

func (m *model) triggered(on *issue, by *account) {
	t := &trigger{on: on, by: by, at: m.w.now, able: by.canWrite()}
	if task := m.task(on); task != nil && !task.Ended() {
		t.seen = true // already visible
	}
	if m.w.mishap.kind == "lost" && on.closed { // no list of GitHub's has actions on a closed issue
		t.dropped = true
	}
	m.triggers = append(m.triggers, t)
}

// retried records `retry` on an issue or on the pull request of a task. A reply is enough for people to see.
func (m *model) retried(on *issue, by *account) {
	for _, t := range m.w.tasks() {
		if on.pull != nil && t.PR != nil && t.PR.Number == on.number {
			on = m.w.hub.issues[t.Key.Issue]
		}
	}
	m.triggered(on, by)
	t := m.triggers[len(m.triggers)-1]
	t.seen, t.retries = true, true
}

func (m *model) task(on *issue) *state.Task {
	t, err := m.w.store.Task(context.Background(), state.TaskKey{Repo: m.w.hub.repo, Issue: on.number})
	if err != nil {
		m.w.fatalf("read a task: %v", err)
	}
	return t
}

// ending records an action that ends a task, and drops earlier triggers.
func (m *model) ending(on *issue) {
	for _, t := range m.triggers {
		if t.on == on {
			t.dropped = true
		}
	}
	m.ends = append(m.ends, ending{on, m.w.now})
	if l := m.lives[state.TaskKey{Repo: m.w.hub.repo, Issue: on.number}]; l != nil && !l.ended {
		l.endAct = m.w.now
	}
}

// Results of errand.

func (m *model) answered(on *issue) {
	on.eyes = m.w.now
	m.visible(on)
}

func (m *model) posted(c *comment) { m.visible(c.on) }

func (m *model) visible(on *issue) {
	for _, t := range m.triggers {
		if t.on == on {
			t.seen = true
		}
	}
}

func (m *model) planned(r *run) {
	m.plans[r.token] = &written{token: r.token, text: newest(textToken.FindAllString(issuePart(r.spec.Stdin), -1)), kind: r.step}
}

func newest(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[len(list)-1]
}

// issuePart is the heading of a prompt's section with the issue.
func issuePart(prompt string) string {
	_, rest, _ := strings.Cut(prompt, "\n## The issue\n")
	part, _, _ := strings.Cut(rest, "\n## ")
	return part
}

func (m *model) spent(r *run, cost int64) {
	if m.blind {
		return
	}
	key := fmt.Sprintf("%s life %d", r.on.owner, r.life) // a restart grants a new budget
	m.cost[key] += cost
	limit := settings.Default().Limits.MicroUSD + m.caps[r.on.owner]
	if m.cost[key] > limit+answer {
		m.w.fatalf("money: task %s has cost $%.2f with a cap of $%.2f, although one answer costs at most $%.2f", key, float64(m.cost[key])/usd, float64(limit)/usd, float64(answer)/usd)
	}
}

var sayToken = regexp.MustCompile(`say-(\d+)x`)

// words checks the authors of the texts in a prompt.
func (m *model) words(on *issue, r *run) {
	for _, found := range sayToken.FindAllStringSubmatch(r.spec.Stdin, -1) {
		c := m.w.hub.find(func(c *comment) bool { return strings.Contains(c.bodies[0].text, found[0]) })
		if c == nil || c.author == nil {
			continue // deleted meanwhile
		}
		if c.author.held && !c.author.Bot || slices.ContainsFunc(c.thumbs, func(t thumb) bool { return t.by.held && !t.by.Bot }) {
			continue
		}
		m.w.fatalf("trust: the prompt of run %s (%s) has a text by @%s, who has no write access, without a writer's approval", r.spec.ID, r.step, c.author.Login)
	}
	for _, token := range textToken.FindAllString(issuePart(r.spec.Stdin), -1) {
		var by []string // several people may have written the same
		for i, t := range on.texts {
			if strings.Contains(t.body, token) && m.vouched(on, i) {
				by = nil
				break
			} else if strings.Contains(t.body, token) {
				by = append(by, t.by.Login)
			}
		}
		if by != nil {
			m.w.fatalf("trust: the prompt of run %s (%s) has the issue's text by %v (%s), who has no write access, without a writer's approval", r.spec.ID, r.step, by, token)
		}
	}
}

// vouched reports whether a writer wrote a version of the issue's text, or acted while it was current.
func (m *model) vouched(on *issue, version int) bool {
	t := on.texts[version]
	if t.by.held && !t.by.Bot {
		return true
	}
	until := m.w.now
	if version+1 < len(on.texts) {
		until = on.texts[version+1].at
	}
	stood := func(at time.Time) bool { return !at.Before(t.at) && !at.After(until.Add(time.Second)) }
	for _, g := range m.triggers {
		if g.on == on && g.by.held && !g.by.Bot && stood(g.at) {
			return true
		}
	}
	return slices.ContainsFunc(on.thumbs, func(u thumb) bool { return u.by.held && !u.by.Bot && !u.at.Before(t.at) })
}

// endedByPull records that a pull request, possibly the task's, was merged or closed.
func (m *model) endedByPull(on *issue) {
	m.pullEnds = append(m.pullEnds, ending{on, m.w.now})
	if l := m.lives[state.TaskKey{Repo: m.w.hub.repo, Issue: on.number}]; l != nil && !l.ended {
		l.endAct = m.w.now
	}
}
