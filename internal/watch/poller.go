package watch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/store"
)

// A ReactionReader reads the 👍 on comments of one installation. Up to 100 comments cost one rate limit point.
type ReactionReader interface {
	PollReactions(ctx context.Context, installation int64, nodes []string) (forge.ReactionPoll, error)
}

// PollerConfig configures a [Poller]. Zero durations select the defaults in parentheses.
type PollerConfig struct {
	Store interface {
		Reader
		Applier
	}
	GitHub ReactionReader
	Log    zerolog.Logger
	Now    func() time.Time
	Young  time.Duration // age up to which a plan is polled at the fast interval (10 min)
	Fast   time.Duration // interval while a plan is young (15 s)
	Slow   time.Duration // interval otherwise (60 s)
	Gap    time.Duration // minimum interval, also when poked (2 s)
	Low    int           // below this many remaining points polls are slow (1000)
	Polled func(cost int)
}

// A Poller reads reactions, with one call per installation: those on plans that await approval, and on comments that
// the agent cannot see until somebody with write access approves them.
type Poller struct {
	cfg  PollerConfig
	poke chan struct{}
	// reported holds, by installation, the reactions that were reported in the task's current phase and still exist, so
	// that one that was not accepted is not reported at each poll. It is lost at a restart, because the store knows
	// which reactions counted.
	reported map[int64]map[string]bool
	slow     bool
	// lastMarks is the state of each task at the last poll.
	lastMarks map[state.TaskKey]taskMarks
}

// NewPoller returns a [Poller].
func NewPoller(cfg PollerConfig) *Poller {
	for _, d := range []struct {
		at  *time.Duration
		def time.Duration
	}{{&cfg.Young, 10 * time.Minute}, {&cfg.Fast, 15 * time.Second}, {&cfg.Slow, time.Minute}, {&cfg.Gap, 2 * time.Second}} {
		if *d.at == 0 {
			*d.at = d.def
		}
	}
	if cfg.Low == 0 {
		cfg.Low = 1000
	}
	return &Poller{cfg: cfg, poke: make(chan struct{}, 1), reported: map[int64]map[string]bool{}}
}

// Poke requests a poll ahead of schedule, after an event on an issue.
func (p *Poller) Poke() {
	select {
	case p.poke <- struct{}{}:
	default:
	}
}

// Run polls until ctx ends.
func (p *Poller) Run(ctx context.Context) error {
	wake := p.cfg.Store.Wake(ctx)
	for {
		young, any, err := p.poll(ctx)
		if err != nil && ctx.Err() == nil {
			p.cfg.Log.Warn().Err(err).Msg("failed to read reactions")
		}
		d := p.cfg.Slow
		if young && !p.slow {
			d = p.cfg.Fast
		}
		if !any { // no task needs polls: the store reports the next change
			if !pause(ctx, p.cfg.Slow, wake) {
				return nil
			}
			continue
		}
		if !pause(ctx, p.cfg.Gap, nil) || !pause(ctx, max(d-p.cfg.Gap, 0), p.poke) {
			return nil
		}
	}
}

// poll reads the reactions on all marked comments. young reports a recently posted plan, any whether there are marked
// comments at all. An error with one installation does not affect the others.
func (p *Poller) poll(ctx context.Context) (young, any bool, err error) {
	waiting, err := p.marksByTask(ctx)
	if err != nil {
		return false, false, fmt.Errorf("list tasks for the reaction poll: %w", err)
	}
	var errs []error
	byInstallation := map[int64]map[string]mark{}
	for _, w := range waiting {
		for node, m := range w.marks {
			if byInstallation[w.installation] == nil {
				byInstallation[w.installation] = map[string]mark{}
			}
			byInstallation[w.installation][node] = m
			any = true
			young = young || m.plan != nil && p.cfg.Now().Sub(m.plan.PostedAt) < p.cfg.Young
		}
	}
	maps.DeleteFunc(p.reported, func(installation int64, _ map[string]bool) bool { return byInstallation[installation] == nil })
	for _, installation := range slices.Sorted(maps.Keys(byInstallation)) {
		marked := byInstallation[installation]
		if err := p.read(ctx, installation, marked); err != nil {
			errs = append(errs, fmt.Errorf("installation %d: %w", installation, err))
		}
	}
	return young, any, errors.Join(errs...)
}

// taskMarks is the data that a poll needs of one task.
type taskMarks struct {
	stamp        uint64
	installation int64
	marks        map[string]mark
}

// marksByTask returns the data of each task. It reads only tasks that have changed since the last poll.
func (p *Poller) marksByTask(ctx context.Context) (map[state.TaskKey]taskMarks, error) {
	now := map[state.TaskKey]taskMarks{}
	err := p.cfg.Store.EachOpen(ctx, func(l store.Listed) error {
		if !isPolled(l.Phase) {
			return nil
		}
		if known, ok := p.lastMarks[l.Key]; ok && known.stamp == l.Stamp {
			now[l.Key] = known
			return nil
		}
		t, err := l.Load()
		if err != nil {
			return err
		}
		now[l.Key] = taskMarks{l.Stamp, t.Installation, marks(t)}
		return nil
	})
	if err == nil {
		p.lastMarks = now
	}
	return now, err
}

// isPolled reports whether a task in this phase may wait for a reaction.
func isPolled(ph state.Phase) bool {
	return ph.AwaitsApproval() || ph.Working() || ph == state.PhasePreliminaryPlanning ||
		ph == state.PhasePlanning || ph == state.PhaseQueued
}

// A mark is a comment whose reactions are polled.
type mark struct {
	task     state.TaskKey
	since    time.Time       // start of the task's current phase
	plan     *state.Plan     // set for a plan revision
	withheld *state.Withheld // set for a withheld text
}

// marks returns the comments of a task whose reactions are relevant now: the newest two plan revisions while one awaits
// approval or is being replaced (so that a 👍 on the older one gets a reply), and withheld texts.
func marks(t *state.Task) map[string]mark {
	out := map[string]mark{}
	planning := t.Phase == state.PhasePreliminaryPlanning || t.Phase == state.PhasePlanning
	newest := t.NewestPlan()
	changing := t.Phase.Working() && newest != nil && newest.Publish != nil && newest.Superseded
	if t.Phase.AwaitsApproval() || planning || changing {
		for i := max(0, len(t.Plans)-2); i < len(t.Plans); i++ {
			if p := &t.Plans[i]; p.Posted() && (t.Approval == nil || t.Approval.Hash != p.Hash) && (p.Publish == nil || p.Publish.Approved == nil) {
				short := *p
				short.Text = "" // keeps the data between polls small
				out[p.CommentNode] = mark{task: t.Key, since: t.Since, plan: &short}
			}
		}
	}
	if t.Phase.AwaitsPlan() || planning || t.Phase == state.PhaseQueued {
		for i := range t.Context.Withheld {
			w := t.Context.Withheld[i]
			node := w.Node
			if w.ID == 0 && node == "" {
				node = t.IssueNode
			}
			if node != "" {
				out[node] = mark{task: t.Key, since: t.Since, withheld: &w}
			}
		}
	}
	return out
}

// read requests the reactions of one installation and reports the new ones.
func (p *Poller) read(ctx context.Context, installation int64, marked map[string]mark) error {
	nodes := slices.Sorted(maps.Keys(marked))
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	thumbs, err := p.cfg.GitHub.PollReactions(forge.WithPurpose(ctx, forge.ForPoll), installation, nodes)
	if err != nil {
		return err
	}
	if p.cfg.Polled != nil {
		p.cfg.Polled(thumbs.Cost)
	}
	p.slow = thumbs.Remaining > 0 && thumbs.Remaining < p.cfg.Low
	current := map[string]bool{}
	for _, node := range nodes { // in a fixed order
		list := thumbs.Reactions[node]
		for i := len(list) - 1; i >= 0; i-- { // oldest first
			id := "thumb:" + list[i].Node
			key := id + " " + marked[node].since.Format(time.RFC3339Nano)
			if !p.reported[installation][key] {
				if err := p.report(ctx, marked[node], list[i], id); err != nil {
					return err // the store knows those that were already reported
				}
			}
			current[key] = true
		}
	}
	p.reported[installation] = current
	for _, node := range thumbs.Deleted {
		if m := marked[node]; m.plan != nil && m.plan.Open() {
			e := event.Event{Task: m.task, Payload: event.PlanStale{Hash: m.plan.Hash, Reason: state.StaleDeleted}}
			if _, err := p.cfg.Store.Apply(ctx, e, store.Ack{}); err != nil {
				return fmt.Errorf("report a deleted plan: %w", err)
			}
		}
	}
	return nil
}

// report applies one 👍 as an event.
func (p *Poller) report(ctx context.Context, m mark, th forge.Reaction, id string) error {
	if m.task.IsZero() {
		return nil
	}
	e := event.Event{Task: m.task, ID: id, By: th.By, At: th.At}
	if m.plan != nil {
		given := state.Approval{Via: state.ViaReaction, Given: th.At, By: th.By}
		e.Payload = event.Thumb{Candidate: &state.Candidate{Comment: m.plan.Comment, Approval: given}}
	} else {
		e.ID += ":" + strconv.FormatInt(m.withheld.ID, 10)
		e.Payload = event.Thumb{Comment: &state.Comment{ID: m.withheld.ID, Node: m.withheld.Node, Body: m.withheld.Body, At: th.At}}
	}
	if _, err := p.cfg.Store.Apply(ctx, e, store.Ack{}); err != nil {
		return fmt.Errorf("report a reaction: %w", err)
	}
	return nil
}
