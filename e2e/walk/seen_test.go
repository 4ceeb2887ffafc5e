package walk

import (
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// polls holds what the poller was shown against what it told the store: a 👍 that GitHub shows is reported in every
// phase in which its task asks for it, and a plan that is gone as long as it is open.
type polls struct {
	w      *world
	asked  map[string]asked                       // what tasks wait for as a poll begins, by node
	shown  map[string][]string                    // reactions by the node that they are on
	gone   []string                               // nodes
	told   map[state.TaskKey]map[string]time.Time // when the store took a report, by reaction
	failed bool                                   // the store did not take one in this poll
	stale  map[string]bool                        // revisions that were told to be gone in this poll
}

type asked struct {
	task  state.TaskKey
	since time.Time // the task has been in its phase
	open  string    // the revision, if it can be approved
}

// begins notes what tasks wait for.
func (p *polls) begins() {
	p.asked, p.shown, p.gone, p.failed, p.stale = map[string]asked{}, map[string][]string{}, nil, false, map[string]bool{}
	for _, t := range p.w.tasks() {
		if !t.Phase.AwaitsApproval() {
			continue
		}
		for _, plan := range t.Plans[max(0, len(t.Plans)-2):] { // a 👍 on the one before is answered
			if !plan.Posted() || t.Approval != nil && t.Approval.Hash == plan.Hash {
				continue
			}
			a := asked{task: t.Key, since: t.Since}
			if plan.Open() {
				a.open = plan.Hash
			}
			p.asked[plan.CommentNode] = a
		}
	}
}

// shows notes what GitHub answered.
func (p *polls) shows(list forge.ReactionPoll) {
	for node, by := range list.Reactions {
		for _, th := range by {
			p.shown[node] = append(p.shown[node], th.Node)
		}
	}
	p.gone = append(p.gone, list.Deleted...)
}

// applied notes what the poller told the store.
func (p *polls) applied(e event.Event, err error) {
	switch {
	case err != nil:
		p.failed = true
	case e.Kind() == event.KindThumb:
		node, _, _ := strings.Cut(strings.TrimPrefix(e.ID, "thumb:"), ":")
		if p.told == nil {
			p.told = map[state.TaskKey]map[string]time.Time{}
		}
		if p.told[e.Task] == nil {
			p.told[e.Task] = map[string]time.Time{}
		}
		p.told[e.Task][node] = p.w.now
	case e.Kind() == event.KindStale && event.Of[event.Stale](e).Reason == state.StaleDeleted:
		p.stale[event.Of[event.Stale](e).Hash] = true
	}
}

// ends holds a poll against what it was shown. One in which the store refused something reports the rest at the next.
func (p *polls) ends() {
	if p.failed || !p.w.errand.up() {
		return
	}
	for _, node := range sortedKeys(p.shown) {
		a, ok := p.asked[node]
		if !ok {
			continue
		}
		for _, th := range p.shown[node] {
			if at := p.told[a.task][th]; at.IsZero() || at.Before(a.since) {
				p.w.fatalf("seen: the 👍 %s on the plan %s was shown to the poll, and task %s, which has waited since %s, was not told", th, node, a.task, sub(a.since))
			}
		}
	}
	for _, node := range p.gone {
		if a := p.asked[node]; a.open != "" && !p.stale[a.open] {
			p.w.fatalf("seen: the plan %s is gone, and task %s, which waits for its approval, was not told", node, a.task)
		}
	}
}
