package admin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"time"

	"github.com/errand-bot/errand/internal/admin/login"
	"github.com/errand-bot/errand/internal/admin/transcript"
	"github.com/errand-bot/errand/internal/egress"
	"github.com/errand-bot/errand/internal/words"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/store"
)

const maxRows = 200 // rows of each list on a task's page, the newest ones

// taskView is the data of a task's page.
type taskView struct {
	Card    card
	Task    *state.Task
	History []phaseRow
	Plans   []planRow // newest first
	Runs    []runRow  // newest first
	Steps   []state.StepSum
	VMs     []state.VM
	Used    string         // cost and paid time of the VMs
	Posted  []state.Posted // newest first
	Jobs    []state.Job
	Reached []egress.Request // newest first
	Live    *liveLog
	Hidden  int // omitted rows of all lists
	// Offered are the possible actions of operators, ActionID is the ID of the next one, and Actions are the past ones.
	Offered  []action
	ActionID string
	Actions  []store.Action // newest first
	// Pausable states that the page offers to pause the repository or, if Paused is its pause, to resume it.
	Pausable bool
	Paused   *state.Pause
}

// liveLog is the end of the active run's log.
type liveLog struct {
	Path string // path of the run's page
	Part *transcript.Part
	Gone string
	Live bool
	// Wide is set on the run's page.
	Wide bool
}

type phaseRow struct {
	state.PhaseChange
	Took time.Duration
	Last bool // the active or last phase
}

type planRow struct {
	state.Plan
	State    string // as text
	Tone     string
	Digits   string // the visible digits of the hash
	Approval *state.Approval
}

type runRow struct {
	state.Run
	Path string
	Took time.Duration
	Tone string
	// Doubt states that the agent-reported tokens differ from the gateway's; empty if they do not.
	Doubt string
}

// Percent returns the share of the task's cap that is spent, at most 100.
func (v *taskView) Percent() int {
	m := v.Task.Money
	if m.CapMicroUSD <= 0 {
		return 0
	}
	return int(min(100, 100*m.MicroUSD/m.CapMicroUSD))
}

// task serves a task's page.
func (p *pages) task(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), boardTime)
	defer cancel()
	t := taskOf(r)
	v, err := p.taskView(ctx, t, login.ViewerOf(r))
	if err != nil {
		p.fail(w, r, fmt.Errorf("read task %s: %w", t.Key, err))
		return
	}
	p.show(w, r, http.StatusOK, "task", page{Title: fmt.Sprintf("%s#%d", v.Card.Repo, v.Card.Issue), Data: v})
}

func (p *pages) taskView(ctx context.Context, t *state.Task, viewer login.Viewer) (*taskView, error) {
	now := p.cfg.Now()
	v := &taskView{Card: newCard(t), Task: t, History: history(t, now), Plans: plans(t), Steps: steps(t, now)}
	v.VMs = slices.Clone(t.VMs)
	if t.VM != nil {
		v.VMs = append(v.VMs, *t.VM)
	}
	if u := t.VMUse(now); u.VMs > 0 {
		v.Used = words.VMUse(u)
	}
	v.Posted = slices.Clone(t.Posted)
	slices.Reverse(v.VMs)
	slices.Reverse(v.Posted)
	v.Runs = runs(t, now)
	var err error
	if v.Jobs, err = p.cfg.Store.Jobs(ctx, t.Key); err != nil {
		return nil, err
	}
	v.bound()
	if !viewer.Operator() {
		v.hideInternals()
	}
	if p.cfg.Reached != nil {
		var all int
		if v.Reached, all, err = p.cfg.Reached(t.Key, maxRows); err != nil {
			return nil, err
		}
		slices.Reverse(v.Reached)
		v.Hidden += all - len(v.Reached)
	}
	if t.Run != nil {
		if v.Live, err = p.liveLog(t); err != nil {
			return nil, err
		}
	}
	return v, p.readActions(ctx, v, viewer)
}

// detailsForOperators replaces an error text that may name hosts, paths or requests of errand.
const detailsForOperators = "The operator can see the details."

// hideInternals removes what only operators may see: the limits of all tasks together, and the texts of internal errors.
func (v *taskView) hideInternals() {
	v.Card = *v.Card.withoutLimits()
	for i := range v.History {
		v.History[i].Reason = withoutLimits(v.History[i].Reason)
	}
	for i := range v.Runs {
		if v.Runs[i].Status == state.StatusBudget {
			v.Runs[i].Message = withoutLimits(v.Runs[i].Message)
		}
	}
	v.Jobs = slices.Clone(v.Jobs)
	for i := range v.Jobs {
		if v.Jobs[i].LastError != "" {
			v.Jobs[i].LastError = detailsForOperators
		}
	}
}

// bound limits every list to maxRows.
func (v *taskView) bound() {
	v.Hidden = first(&v.Plans) + first(&v.Runs) + first(&v.VMs) + first(&v.Posted) + first(&v.Jobs)
	if more := len(v.History) - maxRows; more > 0 {
		v.History, v.Hidden = v.History[more:], v.Hidden+more
	}
}

func first[T any](list *[]T) (more int) {
	if more = len(*list) - maxRows; more <= 0 {
		return 0
	}
	*list = (*list)[:maxRows]
	return more
}

// liveLog reads the end of the active run's transcript.
func (p *pages) liveLog(t *state.Task) (*liveLog, error) {
	l := &liveLog{Path: runPath(t, t.Run.Seq), Live: true}
	f, err := p.cfg.Transcripts.OpenTranscript(t.Run.ID)
	if errors.Is(err, fs.ErrNotExist) {
		l.Gone = "Nothing has been written about this run yet."
		return l, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open the transcript of %s: %w", t.Run.ID, err)
	}
	defer func() { _ = f.Close() }()
	l.Part, err = transcript.ReadTail(f, tailRecords/2)
	return l, err
}

func history(t *state.Task, now time.Time) []phaseRow {
	rows := make([]phaseRow, len(t.History))
	for i, h := range t.History {
		rows[i] = phaseRow{PhaseChange: h, Last: i+1 == len(t.History)}
		if rows[i].Last {
			rows[i].Took = now.Sub(h.At)
		} else {
			rows[i].Took = t.History[i+1].At.Sub(h.At)
		}
	}
	return rows
}

func plans(t *state.Task) []planRow {
	var rows []planRow
	for _, p := range slices.Backward(t.Plans) {
		row := planRow{Plan: p, State: "waits for approval", Tone: "people", Digits: p.Short()}
		a := t.Approval
		for a != nil && a.Hash != p.Hash { // of an earlier kind of plan
			a = a.Before
		}
		if p.Publish != nil {
			a = p.Publish.Approved
		}
		switch {
		case a != nil && a.Hash == p.Hash:
			row.State, row.Tone, row.Approval = "approved", "good", a
		case p.Stale != "":
			row.State, row.Tone = "stale: "+staleWords(p.Stale), "warn"
		case p.Superseded:
			row.State, row.Tone = "superseded", "calm"
		case !p.Posted():
			row.State, row.Tone = "about to be posted", "busy"
		case p.Kind == state.PlanPreliminary && t.NewestPlan().Kind == state.PlanThorough:
			row.State, row.Tone = "approved", "good"
		case !t.Phase.AwaitsApproval():
			row.State, row.Tone = "not approved", "calm"
		}
		rows = append(rows, row)
	}
	return rows
}

func staleWords(why string) string {
	switch why {
	case state.StaleEdited:
		return "somebody edited its comment"
	case state.StaleDeleted:
		return "its comment was deleted"
	case state.StaleIssueChanged:
		return "the issue has changed since"
	}
	return why
}

// steps returns the totals of each step, including the active run so far.
func steps(t *state.Task, now time.Time) []state.StepSum {
	list := t.Summary().Steps
	if r := t.Run; r != nil {
		if i := slices.IndexFunc(list, func(s state.StepSum) bool { return s.Step == r.Kind }); i >= 0 {
			list[i].Took += took(r, now)
		}
	}
	return list
}

// runTone returns the CSS class of a run's outcome.
func runTone(r *state.Run) string {
	if c := r.CheckSummary; c != nil && len(c.Failed) > 0 {
		return "warn"
	}
	return map[state.RunClass]string{state.RunSucceeded: "good", state.RunRetryable: "warn", state.RunFatal: "bad"}[r.Class]
}

func runs(t *state.Task, now time.Time) []runRow {
	list := slices.Clone(t.Runs)
	if t.Run != nil {
		list = append(list, *t.Run)
	}
	slices.Reverse(list)
	var rows []runRow
	for _, r := range list {
		row := runRow{Run: r, Path: runPath(t, r.Seq), Took: took(&r, now), Tone: "busy"}
		if r.State == state.RunEnded {
			row.Tone = runTone(&r)
			verdict, message := r.Verdict()
			row.Status, row.Message = state.RunStatus(verdict), message // as the page shows it
			if m := r.TokenMismatch(); m != nil {
				row.Doubt = m.Sentence()
			}
		}
		rows = append(rows, row)
	}
	return rows
}
