package state

import (
	"fmt"
	"slices"
	"time"
)

// Summary summarizes one life of a task in figures and dates: the actions, their authors and times, the cost of each
// step, and the reason for the end. It contains no text by people or of plans.
type Summary struct {
	Task string `json:"task"` // OWNER/REPO#N, with the current name
	Life int    `json:"life"` // Task.Gen
	// Phase is the task's current phase; Start and End are those of this life. End is zero until it ends.
	Phase Phase     `json:"phase"`
	Start time.Time `json:"start,omitzero"`
	End   time.Time `json:"end,omitzero"`
	// Iterations counts the runs of all steps, Rounds the rounds of review.
	Iterations int `json:"iterations"`
	Rounds     int `json:"rounds"`
	// Active is the agents' working time.
	Active   time.Duration `json:"agent_ns"`
	Money    Money         `json:"money"`
	Steps    []StepSum     `json:"steps,omitempty"` // in the order of their first runs
	Phases   []PhaseChange `json:"phases,omitempty"`
	Verdicts []Verdict     `json:"verdicts,omitempty"` // oldest first
	// TokenMismatches are the runs whose agents reported other tokens than the gateway counted.
	TokenMismatches []TokenMismatch `json:"miscounts,omitempty"`
	// Reason and Hint are sentences for people; Class is for the operator.
	Reason string       `json:"reason,omitempty"`
	Hint   string       `json:"hint,omitempty"`
	Class  FailureClass `json:"class,omitempty"`
	Branch string       `json:"branch,omitempty"`
	Pull   string       `json:"pull_request,omitempty"` // its URL
}

// StepSum is the sum of the runs of one step.
type StepSum struct {
	Step  RunKind       `json:"step"`
	Runs  int           `json:"runs"`
	Took  time.Duration `json:"took_ns"`
	Turns int           `json:"turns"`
	Money Money         `json:"money"`
}

// Verdict is the result of a run, a person's decision about a plan, or a refusal by the push gate.
type Verdict struct {
	At      time.Time `json:"at,omitzero"`
	Subject string    `json:"what"`              // "run 2, implement", "plan 1"
	Verdict string    `json:"verdict"`           // the run's status; passed or failed, of checks; approved, superseded, stale …
	By      string    `json:"by,omitempty"`      // the login of the person who decided
	Message string    `json:"message,omitempty"` // one sentence
}

// Summary returns the summary of the task's current life.
func (t *Task) Summary() Summary {
	s := Summary{
		Task: fmt.Sprintf("%s#%d", t.Repo.FullName(), t.Key.Issue), Life: t.Gen, Phase: t.Phase,
		Rounds: t.Round, Active: t.AgentTime(), Money: t.Money,
		Phases: t.History, Branch: t.Branch.Name,
	}
	if len(t.History) > 0 {
		s.Start = t.History[0].At
	}
	if e := t.End; e != nil && (t.Ended() || t.Phase == PhaseFailed) {
		s.End, s.Reason, s.Hint, s.Class = e.At, e.Reason, e.Hint, e.Class
	}
	if t.PR != nil {
		s.Pull = t.PR.URL
	}
	runs := t.Runs
	if t.Run != nil {
		runs = append(slices.Clip(runs), *t.Run)
	}
	s.Iterations = len(runs)
	for i := range runs {
		s.count(&runs[i])
		if r := &runs[i]; r.State == RunEnded {
			v := Verdict{At: r.Ended, Subject: fmt.Sprintf("run %d, %s", r.Seq, r.Kind)}
			v.Verdict, v.Message = r.Verdict()
			s.Verdicts = append(s.Verdicts, v)
		}
		if m := runs[i].TokenMismatch(); m != nil {
			s.TokenMismatches = append(s.TokenMismatches, *m)
		}
	}
	s.Verdicts = append(s.Verdicts, t.planVerdicts()...)
	s.Verdicts = append(s.Verdicts, t.GateVerdicts()...)
	slices.SortStableFunc(s.Verdicts, func(a, b Verdict) int { return a.At.Compare(b.At) })
	return s
}

// count adds a run to its step.
func (s *Summary) count(r *Run) {
	i := slices.IndexFunc(s.Steps, func(o StepSum) bool { return o.Step == r.Kind })
	if i < 0 {
		i, s.Steps = len(s.Steps), append(s.Steps, StepSum{Step: r.Kind})
	}
	sum := &s.Steps[i]
	sum.Runs++
	sum.Turns += r.Turns
	sum.Money.Add(r.Money)
	if !r.Started.IsZero() && r.Ended.After(r.Started) {
		sum.Took += r.Ended.Sub(r.Started)
	}
}

// planVerdicts returns a verdict on each posted revision.
func (t *Task) planVerdicts() (list []Verdict) {
	given := map[string]*Approval{}
	for a := t.Approval; a != nil; a = a.Before {
		given[a.Hash] = a
	}
	for i := range t.Plans {
		p := &t.Plans[i]
		if p.Publish != nil && p.Publish.Approved != nil {
			given[p.Hash] = p.Publish.Approved
		}
		v := Verdict{At: p.Made, Subject: fmt.Sprintf("%s plan %d", p.Kind.Name(), p.Revision)}
		if p.Kind == PlanPublish {
			v.Subject = fmt.Sprintf("changes %d", p.Revision)
		}
		switch a := given[p.Hash]; {
		case a != nil:
			v.At, v.Verdict, v.By = a.At, "approved", a.By.Login
		case p.Stale != "":
			v.Verdict, v.Message = "stale", p.Stale
		case p.Superseded:
			v.Verdict = "superseded"
		case p.Kind == PlanPreliminary && t.NewestPlan().Kind != PlanPreliminary:
			v.Verdict = "approved" // otherwise there would be no later one
		case !p.Posted() || t.Phase.AwaitsApproval() || t.ConsideredPlan() == p:
			continue // nobody has decided yet
		default:
			v.Verdict = "not approved"
		}
		list = append(list, v)
	}
	return list
}

// Name returns the kind of a plan as people read it: "preliminary" or "detailed".
func (k PlanKind) Name() string {
	if k == PlanThorough {
		return "detailed"
	}
	return string(k)
}
