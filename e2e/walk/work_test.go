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

// Commits of runs are not lost: whenever errand deletes a VM or an archive, or resets a checkout, each commit there is
// also on a branch on GitHub, in the saved work of its task, on another VM of the task, or in the archive of the
// suspended task. Otherwise one of the rules at works.permitLoss permits its loss.

// piece is a commit of a run. It is identified by its tree, because a rebase changes everything else.
type piece struct {
	tree, run, owner string
	life             int
	at               time.Time
}

// works tracks the commits of all runs.
type works struct {
	w     *world
	made  map[string]*piece // by tree
	trees map[string]string // by the ID on GitHub
	safe  map[string]bool   // trees that are on a branch, or were saved
	given map[string]string // why a tree need not be kept
	heads map[string]bool   // commits that a branch pointed to
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

// commits records a commit of a run.
func (k *works) commits(r *run, c changeset.Commit) {
	k.made[c.Tree] = &piece{c.Tree, r.spec.ID, r.on.owner, r.life, k.w.now}
}

// permitLoss records that the work on a VM need not be kept, and the rule for it.
func (k *works) permitLoss(o *walkVM, why string) {
	o.given = why
	for _, c := range o.work {
		if k.given[c.Tree] == "" {
			k.given[c.Tree] = why
		}
	}
}

// published records the commits that were created on GitHub.
func (k *works) published(id, tree string) { k.trees[id] = tree }

// recordMove records that a branch points to a commit: the commit and its ancestors are safe.
func (k *works) recordMove(head string) {
	k.heads[head] = true
	for c := k.w.hub.commits[head]; c != nil; c = k.w.hub.commits[head] {
		if tree := k.trees[head]; tree != "" {
			k.safe[tree] = true
		}
		head = c.parent
	}
}

// applied records an event that the store accepted.
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
	if a := after.Suspended; a != nil && e.Kind() == event.KindSuspended && before != nil && (before.Suspended == nil || !before.Suspended.At.Equal(a.At)) {
		k.slept[a.Ref] = k.w.now
	}
	if e.Kind() == event.KindDue && before != nil && before.Suspended != nil && after.Suspended == nil && !after.Ended() {
		if age := k.w.now.Sub(before.Suspended.At); before.Gen == after.Gen && age < machine.DefaultPolicy().KeepAsleep {
			k.w.complain("kept: the archive of task %s is discarded %s after its work was saved", after.Key, age)
		}
	}
	if event.Of[event.RunEnded](e).Result.Status == state.StatusVMLost && before != nil && before.VM != nil {
		for _, o := range k.w.machines.list {
			if o.name == before.VM.Name {
				k.permitLoss(o, "a VM that cannot be reached for ten minutes is lost")
			}
		}
	}
}

// checkWorkKept checks that the work on a VM is kept elsewhere before it is deleted. It ignores a call that outlasted
// its lease, because the program on the VM ends with its connection.
func (k *works) checkWorkKept(o *walkVM, what string) {
	if o.given == "" && !k.w.late {
		k.all(o.owner, o.work, what, o)
	}
}

// all checks that commits of a task are kept elsewhere.
func (k *works) all(owner string, list []changeset.Commit, what string, but *walkVM) {
	for _, c := range list {
		p := k.made[c.Tree]
		if p == nil || k.safe[c.Tree] || k.given[c.Tree] != "" || k.keptElsewhere(c.Tree, but) {
			continue
		}
		t := k.w.taskOf(owner)
		if t == nil || k.isLossPermitted(t, p) {
			continue
		}
		k.w.complain("kept: %s, but the commit of run %s of %s is not kept elsewhere: task %s is %s, step %q, saved %v", what, p.run, sub(p.at), owner, t.Phase, t.Step, t.Saved)
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

// keptElsewhere reports whether another VM of its task, or the archive of the suspended task, has a commit.
func (k *works) keptElsewhere(tree string, but *walkVM) bool {
	has := func(list []changeset.Commit) bool {
		return slices.ContainsFunc(list, func(c changeset.Commit) bool { return c.Tree == tree })
	}
	for _, t := range k.w.tasks() {
		if t.Suspended != nil && k.w.asleep[t.Suspended.Ref] != nil && has(k.packed(t.Suspended.Ref).Work) {
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

// unpacked records that an archive could not be unpacked. The archive is discarded when the job has failed four times
// for any reason.
func (k *works) unpacked() {
	if j := k.w.job; j != nil {
		k.tried[k.opened] = max(k.tried[k.opened], k.w.jobs.of(j.ID).errors+1)
	}
}

// packed returns the content of an archive.
func (k *works) packed(ref string) (p packed) {
	if err := json.NewDecoder(bytes.NewReader(k.w.asleep[ref])).Decode(&p); err != nil {
		k.w.complain("kept: archive %s: %v", ref, err)
	}
	return p
}

// isLossPermitted reports whether later commands of people mean that a commit is no longer needed, or errand never knew
// that its run had begun: its task ended while the answer to its start was lost.
func (k *works) isLossPermitted(t *state.Task, p *piece) bool {
	began := func(r state.Run) bool { return r.ID == p.run && !r.Started.IsZero() }
	unknown := t.Ended() && !slices.ContainsFunc(t.Runs, began) && (t.Run == nil || !began(*t.Run))
	l := k.w.model.lives[t.Key]
	again := l == nil || t.Gen != l.gen || l.began > p.life
	edited := slices.ContainsFunc(k.w.hub.issues[t.Key.Issue].texts, func(x text) bool { return !x.at.Before(p.at.Truncate(time.Second)) })
	return unknown || again && t.Gen > p.life || edited && t.Gen > p.life || k.w.model.saidSince(t, p.at, "retry fresh", "replan")
}

// saidSince reports whether a writer has given one of some commands since a time.
func (m *model) saidSince(t *state.Task, then time.Time, words ...string) bool {
	return slices.ContainsFunc(m.w.hub.issues[t.Key.Issue].comments, func(c *comment) bool {
		return c.author != nil && c.author.held && !c.created.Before(then.Truncate(time.Second)) &&
			slices.ContainsFunc(words, func(o string) bool { return strings.Contains(c.body(), "@errand "+o) })
	})
}

// checkArchiveDeletion checks an archive that is about to be deleted: it is not that of a suspended task, or it was not
// used for two weeks, or its task ended a day ago.
func (k *works) checkArchiveDeletion(ref string) {
	if k.w.asleep[ref] == nil {
		return
	}
	for _, t := range k.w.tasks() {
		if a := t.Suspended; a != nil && a.Ref == ref {
			k.w.complain("kept: archive %s is deleted while it is the archive of the suspended task %s", ref, t.Key)
		}
	}
	repo, rest, _ := strings.Cut(ref, "-")
	number, _, _ := strings.Cut(rest, "-")
	owner := fmt.Sprintf("%s/%s", repo, number)
	t, age, p := k.w.taskOf(owner), k.w.now.Sub(k.slept[ref]), machine.DefaultPolicy()
	switch {
	case t == nil || k.slept[ref].IsZero(): // its task never learned of it
	case age >= p.KeepAsleep || t.Ended() && k.w.now.Sub(t.End.At) >= p.KeepAfterEnd:
	case k.tried[ref] >= 4: // it is unusable
	default:
		k.all(owner, k.packed(ref).Work, "archive "+ref+" is deleted "+age.String()+" after its creation", nil)
	}
}
