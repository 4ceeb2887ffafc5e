package walk

import (
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// polls compares GitHub's answers to the poller with its reports to the store: a visible 👍 is reported in every phase
// in which its task waits for it, and a deleted plan as long as the plan is open.
type polls struct {
	w      *world
	asked  map[string]asked                       // approvals that tasks wait for at the beginning of a poll, by node
	shown  map[string][]string                    // reactions by their node
	gone   []string                               // nodes
	told   map[state.TaskKey]map[string]time.Time // when the store accepted a report, by reaction
	failed bool                                   // the store rejected one in this poll
	stale  map[string]bool                        // revisions reported as deleted in this poll
}

type asked struct {
	task  state.TaskKey
	since time.Time // since when the task has been in its phase
	open  string    // the revision, if it can be approved
}

// checkBegin records the approvals that tasks wait for.
func (p *polls) checkBegin() {
	p.asked, p.shown, p.gone, p.failed, p.stale = map[string]asked{}, map[string][]string{}, nil, false, map[string]bool{}
	for _, t := range p.w.tasks() {
		if !t.Phase.AwaitsApproval() {
			continue
		}
		for _, plan := range t.Plans[max(0, len(t.Plans)-2):] { // a 👍 on the previous one is answered
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

// shows records GitHub's answer.
func (p *polls) shows(list forge.ReactionPoll) {
	for node, by := range list.Reactions {
		for _, th := range by {
			p.shown[node] = append(p.shown[node], th.Node)
		}
	}
	p.gone = append(p.gone, list.Deleted...)
}

// applied records the poller's report to the store.
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
	case e.Kind() == event.KindPlanStale && event.Of[event.PlanStale](e).Reason == state.StaleDeleted:
		p.stale[event.Of[event.PlanStale](e).Hash] = true
	}
}

// ends checks a poll against the answers that it got. After a rejected report, the next poll reports the rest.
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
				p.w.fatalf("seen: the poll got the 👍 %s on the plan %s, but did not report it to task %s, which has waited since %s", th, node, a.task, sub(a.since))
			}
		}
	}
	for _, node := range p.gone {
		if a := p.asked[node]; a.open != "" && !p.stale[a.open] {
			p.w.fatalf("seen: the plan %s was deleted, but this was not reported to task %s, which waits for its approval", node, a.task)
		}
	}
}
