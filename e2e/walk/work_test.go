package walk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/machine"
)

// What a run has committed is kept: whenever errand has a VM deleted, an archive forgotten or a checkout put elsewhere,
// each commit there is on a branch of GitHub's, among the saved work of its task, on another VM of the task, or in the
// archive that the task sleeps as. Or it was given up by one of the rules that stand at w.gives.

// piece is a commit of a run. Its tree is its name: a rebase changes all else.
type piece struct {
	tree, run, owner string
	life             int
	at               time.Time
}

// works is what became of the commits of all runs.
type works struct {
	w     *world
	made  map[string]*piece // by tree
	trees map[string]string // by the id that GitHub has
	safe  map[string]bool   // trees that are on a branch, or were saved
	given map[string]string // why nobody keeps a tree
	heads map[string]bool   // commits that a branch was put on
	tried map[string]int    // how often an archive could not be unpacked
	slept map[string]time.Time
	// opened is the archive that is being unpacked.
	opened string
}

func newWorks(w *world) *works {
	return &works{
		w: w, made: map[string]*piece{}, trees: map[string]string{}, safe: map[string]bool{}, given: map[string]string{}, heads: map[string]bool{},
		tried: map[string]int{}, slept: map[string]time.Time{},
	}
}

// commits notes a commit of a run.
func (k *works) commits(r *run, c changeset.Commit) {
	k.made[c.Tree] = &piece{c.Tree, r.spec.ID, r.on.owner, r.life, k.w.now}
}

// gives notes that nobody keeps the work on a VM, and by which rule.
func (k *works) gives(o *walkVM, why string) {
	o.given = why
	for _, c := range o.work {
		if k.given[c.Tree] == "" {
			k.given[c.Tree] = why
		}
	}
}

// published notes which commits GitHub has made.
func (k *works) published(id, tree string) { k.trees[id] = tree }

// moved notes that a branch stands on a commit: all before it is safe.
func (k *works) moved(head string) {
	k.heads[head] = true
	for c := k.w.hub.commits[head]; c != nil; c = k.w.hub.commits[head] {
		if tree := k.trees[head]; tree != "" {
			k.safe[tree] = true
		}
		head = c.parent
	}
}

// applied follows what the store took.
func (k *works) applied(before, after *state.Task, e event.Event) {
	if after == nil {
		return
	}
	for _, s := range after.Saved {
		if cs := k.w.files[s.Ref]; cs != nil {
			for _, c := range cs.Commits {
				k.safe[c.Tree] = true
			}
		}
	}
	if a := after.Asleep; a != nil && e.Kind() == event.KindSlept && before != nil && (before.Asleep == nil || !before.Asleep.At.Equal(a.At)) {
		k.slept[a.Ref] = k.w.now
	}
	if e.Kind() == event.KindDue && before != nil && before.Asleep != nil && after.Asleep == nil && !after.Ended() {
		if age := k.w.now.Sub(before.Asleep.At); before.Gen == after.Gen && age < machine.DefaultPolicy().KeepAsleep {
			k.w.complain("kept: the archive of task %s is given up %s after its work was put away", after.Key, age)
		}
	}
	if event.Of[event.RunEnded](e).Result.Status == state.StatusVMLost && before != nil && before.VM != nil {
		for _, o := range k.w.machines.list {
			if o.name == before.VM.Name {
				k.gives(o, "a VM that cannot be reached for ten minutes is lost")
			}
		}
	}
}

// holds wants the work on a VM to be kept elsewhere before it goes. A call whose lease is over is not held against
// errand: the program on the VM ends with its connection.
func (k *works) holds(o *walkVM, what string) {
	if o.given == "" && !k.w.late {
		k.all(o.owner, o.work, what, o)
	}
}

// all wants commits of a task to be kept elsewhere.
func (k *works) all(owner string, list []changeset.Commit, what string, but *walkVM) {
	for _, c := range list {
		p := k.made[c.Tree]
		if p == nil || k.safe[c.Tree] || k.given[c.Tree] != "" || k.elsewhere(c.Tree, but) {
			continue
		}
		t := k.w.taskOf(owner)
		if t == nil || k.ruled(t, p) {
			continue
		}
		k.w.complain("kept: %s, and the commit of run %s of %s is nowhere else: task %s is %s, step %q, saved %v", what, p.run, sub(p.at), owner, t.Phase, t.Step, t.Saved)
	}
}

func (w *world) taskOf(owner string) *state.Task {
	for _, t := range w.tasks() {
		if t.Key.String() == owner {
			return t
		}
	}
	return nil
}

// elsewhere reports whether another VM of its task, or the archive that the task sleeps as, has a commit.
func (k *works) elsewhere(tree string, but *walkVM) bool {
	has := func(list []changeset.Commit) bool {
		return slices.ContainsFunc(list, func(c changeset.Commit) bool { return c.Tree == tree })
	}
	for _, t := range k.w.tasks() {
		if t.Asleep != nil && k.w.asleep[t.Asleep.Ref] != nil && has(k.packed(t.Asleep.Ref).Work) {
			return true
		}
		for _, o := range k.w.machines.list {
			if o != but && !o.ended && t.VM != nil && t.VM.Name == o.name && has(o.work) {
				return true
			}
		}
	}
	return false
}

// unpacked notes that an archive could not be unpacked. It is given up when the job that does it has gone wrong four
// times, whatever it was that went wrong before.
func (k *works) unpacked() {
	if j := k.w.job; j != nil {
		k.tried[k.opened] = max(k.tried[k.opened], k.w.jobs.of(j.ID).errors+1)
	}
}

// packed is what an archive has.
func (k *works) packed(ref string) (p packed) {
	if err := json.NewDecoder(bytes.NewReader(k.w.asleep[ref])).Decode(&p); err != nil {
		k.w.complain("kept: archive %s: %v", ref, err)
	}
	return p
}

// ruled reports whether what people said since means that a commit is not wanted any more. Nor is that of a run that errand
// never knew to have begun: its task ended while the answer to its start was lost.
func (k *works) ruled(t *state.Task, p *piece) bool {
	began := func(r state.Run) bool { return r.ID == p.run && !r.Started.IsZero() }
	unknown := t.Ended() && !slices.ContainsFunc(t.Runs, began) && (t.Run == nil || !began(*t.Run))
	return unknown || t.Gen > p.life || k.w.model.saidSince(t, p.at, "retry fresh", "replan")
}

// saidSince reports whether somebody who may has given one of some commands since then.
func (m *model) saidSince(t *state.Task, then time.Time, words ...string) bool {
	return slices.ContainsFunc(m.w.hub.issues[t.Key.Issue].comments, func(c *comment) bool {
		return c.author != nil && c.author.held && !c.created.Before(then.Truncate(time.Second)) &&
			slices.ContainsFunc(words, func(o string) bool { return strings.Contains(c.body(), "@errand "+o) })
	})
}

// forgets holds an archive that is about to be deleted: it is not that of a task that sleeps, or nobody has wanted it
// for two weeks, or its task is over for a day.
func (k *works) forgets(ref string) {
	if k.w.asleep[ref] == nil {
		return
	}
	for _, t := range k.w.tasks() {
		if a := t.Asleep; a != nil && a.Ref == ref {
			k.w.complain("kept: archive %s is deleted while task %s sleeps as it", ref, t.Key)
		}
	}
	repo, rest, _ := strings.Cut(ref, "-")
	number, _, _ := strings.Cut(rest, "-")
	owner := fmt.Sprintf("%s/%s", repo, number)
	t, age, p := k.w.taskOf(owner), k.w.now.Sub(k.slept[ref]), machine.DefaultPolicy()
	switch {
	case t == nil || k.slept[ref].IsZero(): // its task never came to know of it
	case age >= p.KeepAsleep || t.Ended() && k.w.now.Sub(t.End.At) >= p.KeepAfterEnd:
	case k.tried[ref] >= 4: // it cannot be used
	default:
		k.all(owner, k.packed(ref).Work, "archive "+ref+" is deleted "+age.String()+" after it was made", nil)
	}
}
