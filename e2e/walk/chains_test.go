package walk

import (
	"slices"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/state"
)

// chain is a sequence of failures for one job, and for later jobs with its key: each claim has the next failure, the
// first of them at a certain call and the others at the first call. Single random failures rarely occur twice in a row
// at the same place.
type chain struct {
	kind  state.JobKind
	op    string // call of the first link; any call, if empty
	links []string
	task  state.TaskKey // of the matching job
	key   string
	live  string // failure of the current claim
}

// spot identifies a call of a job's step.
type spot struct {
	kind state.JobKind
	op   string
}

// spots are the calls at which a chain can begin.
func spots() []spot {
	return []spot{
		{state.JobStatus, "comment"}, {state.JobPost, "comment"}, {state.JobOpenPR, "open pull"}, {state.JobAnswer, "reply"}, {state.JobAnswer, "start review"}, {state.JobAnswer, "submit review"}, {state.JobMove, "move"},
		{state.JobCommit, "publish"}, {state.JobLaunch, "start run"}, {state.JobLaunch, ""}, {state.JobCollect, ""}, {state.JobStatus, "edit"},
		{state.JobApprove, "permission"}, {state.JobApprove, "read plan"}, {state.JobVet, ""}, {state.JobStart, ""}, {state.JobStop, "stop run"},
		{state.JobRelease, ""}, {state.JobGather, ""}, {state.JobSuspend, ""}, {state.JobReact, ""},
	}
}

// shapes are the sequences; "none" means no failure.
func shapes() [][]string {
	return [][]string{
		{"lost answer", "forbidden", "forbidden"}, {"lost answer", "forbidden", "lost answer"}, {"lost answer", "die before", "denied"},
		{"die before", "die before", "denied"},
		{"denied", "denied", "denied", "denied", "denied", "denied", "denied", "denied", "denied"}, {"limit", "denied"}, {"forbidden"},
		{"slow", "denied"}, {"lost answer", "none", "denied"}, {"denied", "revoked"}, {"denied", "withdrawn"}, {"none", "revoked"},
		{"store refuses", "store refuses", "store refuses"}, {"lost answer", "canceled"},
	}
}

func hangChain(w *world) bool {
	all, rows := spots(), shapes()
	return w.hang(all[w.roll("spot", len(all))], rows[w.roll("shape", len(rows))])
}

func (w *world) hang(s spot, links []string) bool {
	w.chains = append(w.chains, &chain{kind: s.kind, op: s.op, links: links})
	w.note("a chain for the next job %s at %q: %s", s.kind, s.op, strings.Join(links, ", "))
	return true
}

// activateChains activates the next link of each matching chain for a job that begins.
func (w *world) activateChains(j *state.Job) {
	for _, c := range w.chains {
		waits := c.live != "" && c.op != "" // the first link, at its call
		switch {
		case c.kind != j.Kind || !waits && c.key != "" && (c.key != j.Key || c.task != j.Task):
		case waits:
			c.task, c.key = j.Task, j.Key
		case len(c.links) > 0:
			c.task, c.key = j.Task, j.Key
			c.live, c.links = c.links[0], c.links[1:]
			if c.live == "none" {
				c.live, c.op = "", ""
			}
		}
	}
}

// link returns the current job's failure at a call.
func (w *world) link(op string, onVM, writes bool) string {
	if w.job == nil {
		return ""
	}
	for _, c := range w.chains {
		if c.live == "" || c.task != w.job.Task || c.key != w.job.Key || c.op != "" && c.op != op || c.live == "lost answer" && !writes {
			continue
		}
		if rest, later := strings.CutPrefix(c.live, "later "); later { // one call of the claim succeeds first
			c.live = rest
			continue
		}
		found := c.live
		if onVM && (found == "forbidden" || found == "limit") {
			found = "denied"
		}
		c.live, c.op = "", ""
		return found
	}
	return ""
}

// chainTrouble converts a link to a trouble.
func (w *world) chainTrouble(kind string) trouble {
	t := trouble{kind: kind}
	switch kind {
	case "store refuses":
		w.armed = append(w.armed, t)
		return trouble{kind: "meanwhile", act: func() {}}
	case "reviewed":
		return trouble{kind: "meanwhile", act: w.reviewed}
	case "busy and forbidden":
		return trouble{kind: "forbidden", act: w.busy}
	case "revoked", "withdrawn", "canceled":
		return trouble{kind: "meanwhile", act: func() { w.invalidateApproval(kind) }}
	}
	if how, denied := strings.CutSuffix(kind, ", denied"); denied {
		return trouble{kind: "denied", act: func() { w.invalidateApproval(how) }}
	}
	return t
}

// invalidateApproval makes the last approver lose write access for a while, withdraw the 👍, or cancel, or lets a user
// without write access give the same approval instead.
func (w *world) invalidateApproval(how string) {
	if len(w.model.yeses) == 0 {
		return
	}
	y := w.model.yeses[len(w.model.yeses)-1]
	switch how {
	case "revoked":
		if y.by.canWrite() && !y.by.Bot {
			w.note("@%s may read only for a while", y.by.Login)
			w.revoked = append(w.revoked, grant{y.by, y.by.may})
			w.hub.permit(y.by, state.PermissionRead)
		}
	case "withdrawn":
		if c := y.plan; c != nil && len(c.thumbs) > 0 {
			w.unthumb(c)
		}
	case "replaced":
		w.replace(y)
	case "canceled":
		if y.by.held {
			w.model.ending(y.on)
		}
		w.say(y.by, y.on, "@errand cancel")
		w.now = w.now.Add(2 * time.Second)
		w.hub.deliver()
		if w.errand.up() {
			w.errand.settle()
		}
	}
}

// grant is a permission to restore.
type grant struct {
	who *account
	may state.Permission
}

// grants restores revoked permissions.
func (w *world) grants() {
	for _, g := range w.revoked {
		w.note("@%s may %s again", g.who.Login, g.may)
		w.hub.permit(g.who, g.may)
	}
	w.revoked = nil
}

// partial makes one kind of call fail for a while.
func partial(w *world) bool {
	ops := []string{"permission", "read plan", "thumbs", "list comments", "list reviews", "threads", "read issue", "comment", "read delivery", "list issues", "collect", "follow", "stop run"}
	w.down = ops[w.roll("which calls", len(ops))]
	w.downUntil = w.now.Add([]time.Duration{time.Minute, 20 * time.Minute, 3 * time.Hour}[w.roll("partial outage", 3)])
	w.note("every call %q fails until %s", w.down, sub(w.downUntil))
	w.troubled()
	return true
}

// fails reports whether a call fails at present.
func (w *world) fails(op string) error {
	if op != w.down || !w.now.Before(w.downUntil) {
		return nil
	}
	w.troubled()
	return temporary(op, forge.ClassTemporary, 503, time.Time{})
}

// profile is the main subject of a walk.
type profile struct {
	name string
	acts []string // occur more often than usual
}

func profiles() []profile {
	return []profile{
		{name: "plain"},
		{"chains", []string{"chain"}},
		{"doubts", []string{"chain", "review", "trouble"}},
		{"words", []string{"command", "chatter", "review", "pull comment", "webhook", "partial outage"}},
		{"thumbs", []string{"thumb", "unthumb", "tick", "approve", "edit plan", "partial outage", "chain"}},
		{"ends", []string{"unassign", "close", "merge", "close pull", "delete plan", "meanwhile", "chain"}},
		{"stops", []string{"command", "agent", "VM", "meanwhile", "chain"}},
	}
}

// profiled draws the subject of the walk.
func (w *world) profiled(table []act) []act {
	all := profiles()
	p := all[w.roll("profile", len(all))]
	w.hit("profile " + p.name)
	w.note("the walk is about %s", p.name)
	if p.name == "doubts" { // the first write occurs soon
		doubtful := shapes()[:3]
		w.hang(spots()[w.roll("spot", 7)], doubtful[w.roll("shape", len(doubtful))])
	}
	table = slices.Clone(table)
	for i := range table {
		if slices.Contains(p.acts, table[i].name) {
			table[i].weight += 60 / len(p.acts)
		}
	}
	return table
}
