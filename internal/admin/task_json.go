package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/errand-bot/errand/internal/admin/login"
	"github.com/errand-bot/errand/internal/admin/transcript"
	"github.com/errand-bot/errand/internal/words"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/store"
)

// taskData is the content of a task's task.json: its page without long texts. Fields may be added but never change. Lists are the
// newest entries first, at most maxRows. Units are those of the board.
type taskData struct {
	At       time.Time `json:"at"`
	Task     card      `json:"task"`
	Started  startData `json:"started"`
	Question string    `json:"question,omitempty"`
	// Comment is the URL of the status comment.
	Comment string              `json:"status_comment,omitempty"`
	Phases  []state.PhaseChange `json:"phases"`
	Plans   []planData          `json:"plans"`
	Runs    []runData           `json:"runs"`
	VMs     []vmData            `json:"vms"`
	// VMCost is the paid time and cost of all VMs, as text.
	VMCost string `json:"vm_cost,omitempty"`
	// Actions are the latest actions of operators, at most maxActions.
	Actions []store.Action `json:"actions"`
	Omitted int            `json:"omitted,omitempty"` // older rows of all lists
}

// startData is who started the task, how and when.
type startData struct {
	By       string    `json:"by"`
	Via      string    `json:"via"`
	At       time.Time `json:"at"`
	Operator bool      `json:"operator,omitempty"` // an operator started it again
}

// planData is a revision of a plan, or of changes that wait for their approval.
type planData struct {
	Kind     string        `json:"kind"`
	Revision int           `json:"revision"`
	Hash     string        `json:"hash"` // its visible digits
	State    string        `json:"state"`
	Made     time.Time     `json:"made"`
	URL      string        `json:"url,omitempty"`
	Approval *approvalData `json:"approval,omitempty"`
}

// approvalData is who approved a plan.
type approvalData struct {
	By         string    `json:"by"`
	Permission string    `json:"permission"`
	Via        string    `json:"via"`
	At         time.Time `json:"at"`
	With       string    `json:"with,omitempty"`   // its condition
	Choice     int       `json:"choice,omitempty"` // the number of the chosen approach
}

// runData is a run of the task.
type runData struct {
	Seq     int       `json:"seq"`
	Kind    string    `json:"kind"`
	Round   int       `json:"round,omitempty"`
	Model   string    `json:"model,omitempty"`
	State   string    `json:"state"`
	Status  string    `json:"status,omitempty"`
	Message string    `json:"message,omitempty"`
	Started time.Time `json:"started,omitzero"`
	Seconds float64   `json:"seconds"` // up to now or its end
	Turns   int       `json:"turns,omitempty"`
	Spent   float64   `json:"spent"`
	Words   string    `json:"words"` // the amount spent as text
	Page    string    `json:"page"`
}

// vmData is a VM of the task.
type vmData struct {
	Name     string    `json:"name"`
	Provider string    `json:"provider"`
	Kind     string    `json:"kind"`
	Created  time.Time `json:"created,omitzero"`
	Ended    time.Time `json:"ended,omitzero"`
	Why      string    `json:"why,omitempty"`  // of its end
	Cost     string    `json:"cost,omitempty"` // as text; empty if it costs nothing
}

// taskJSON serves task.json.
func (p *pages) taskJSON(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), boardTime)
	defer cancel()
	t := taskOf(r)
	v, err := p.taskView(ctx, t, login.ViewerOf(r))
	if err != nil {
		p.fail(w, r, fmt.Errorf("read task %s: %w", t.Key, err))
		return
	}
	p.json(w, r, newTaskData(v, p.cfg.Now().UTC()))
}

func newTaskData(v *taskView, now time.Time) taskData {
	t := v.Task
	d := taskData{
		At: now, Task: v.Card, Comment: t.Status.URL, VMCost: v.Used, Omitted: v.Hidden,
		Started: startData{By: t.Trigger.By.Login, Via: string(t.Trigger.Via), At: t.Trigger.At, Operator: t.Trigger.Operator},
		Phases:  []state.PhaseChange{}, Plans: []planData{}, Runs: []runData{}, VMs: []vmData{}, Actions: append([]store.Action{}, v.Actions...),
	}
	if t.Question != nil && !t.Ended() {
		d.Question = transcript.Cut(t.Question.Text).Text
	}
	for i := range v.History {
		d.Phases = append(d.Phases, v.History[len(v.History)-1-i].PhaseChange)
	}
	for i := range v.Plans {
		d.Plans = append(d.Plans, newPlanData(&v.Plans[i]))
	}
	for i := range v.Runs {
		r := &v.Runs[i]
		d.Runs = append(d.Runs, runData{
			Seq: r.Seq, Kind: string(r.Kind), Round: r.Round, Model: r.Model, State: string(r.State), Status: string(r.Status),
			Message: transcript.Cut(r.Message).Text, Started: r.Started, Seconds: r.Took.Seconds(), Turns: r.Turns,
			Spent: float64(r.Money.MicroUSD) / 1e6, Words: words.Spent(r.Money), Page: r.Path,
		})
	}
	for _, m := range v.VMs {
		row := vmData{Name: m.Name, Provider: m.Provider, Kind: m.Kind, Created: m.CreatedAt, Ended: m.EndedAt, Why: string(m.EndReason)}
		if m.Paid > 0 {
			row.Cost = words.Cash(m.Cost(now), m.Currency)
		}
		d.VMs = append(d.VMs, row)
	}
	return d
}

func newPlanData(r *planRow) planData {
	d := planData{Kind: string(r.Kind), Revision: r.Revision, Hash: r.Digits, State: r.State, Made: r.Made, URL: r.CommentURL}
	if a := r.Approval; a != nil {
		d.Approval = &approvalData{By: a.By.Login, Permission: string(a.Permission), Via: string(a.Via), At: a.Given, With: transcript.Cut(a.With).Text, Choice: a.Choice}
	}
	return d
}

// summary serves the task's summary as JSON.
func (p *pages) summary(w http.ResponseWriter, r *http.Request) {
	s := taskOf(r).Summary()
	if !login.ViewerOf(r).Operator() {
		s.Phases = slices.Clone(s.Phases)
		for i := range s.Phases {
			s.Phases[i].Reason = withoutLimits(s.Phases[i].Reason)
		}
		for i := range s.Verdicts {
			s.Verdicts[i].Message = withoutLimits(s.Verdicts[i].Message)
		}
	}
	p.json(w, r, s)
}

// json responds with a value as JSON.
func (p *pages) json(w http.ResponseWriter, r *http.Request, v any) {
	w.Header().Set("Content-Type", "application/json")
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil && r.Context().Err() == nil {
		p.cfg.Log.Warn().Err(err).Str("path", r.URL.Path).Msg("failed to write JSON")
	}
}
