package state

// RunStatus is what errand knows of a way in which a run may end.
type RunStatus struct {
	// Denial: a run may end like this because the gateway refused it the model, since programs report a refusal as
	// anything. The gateway's reason is then why the run failed.
	Denial bool
	// Held: likewise, where the refusal is over after a time: the run then ended for that, and goes on afterwards.
	Held bool
	// HTTP: it is a failure of the model's API, whose HTTP status tells people more.
	HTTP bool
}

// RunStatuses returns every status of a run: those that adapters report, and those that errand itself gives.
func RunStatuses() map[string]RunStatus {
	return map[string]RunStatus{
		"ok":                   {},
		StatusMaxTurns:         {},
		"budget":               {Denial: true, Held: true},
		"rate_limited":         {Denial: true, Held: true, HTTP: true},
		"overloaded":           {Denial: true, Held: true, HTTP: true},
		"network":              {Denial: true, Held: true},
		"auth":                 {Denial: true, Held: true, HTTP: true},
		"billing":              {Denial: true, Held: true, HTTP: true},
		StatusContextOverflow:  {Denial: true},
		"answer_cut":           {},
		"looped":               {},
		"refused":              {Denial: true, Held: true},
		StatusNoSession:        {},
		"no_structured_output": {Denial: true},
		"no_op":                {Denial: true, Held: true},
		"interrupted":          {},
		"hook_stopped":         {},
		"duration":             {},
		"stalled":              {Denial: true, Held: true},
		"lost":                 {},
		"setup_failed":         {},
		StatusStartFailed:      {},
		"invalid":              {Denial: true, Held: true, HTTP: true},
		"crashed":              {Denial: true, Held: true},
		StatusVMLost:           {}, // errand's own
	}
}

// preferGatewayReason replaces the message of a failed run with the gateway's reason for refusing its last model call, where
// that explains the end of the run. The judgement itself stays.
func (r *Run) preferGatewayReason(res RunResult) RunResult {
	if r.Denied != "" && res.Class != "success" && RunStatuses()[res.Status].Denial {
		res.Message = r.Denied
	}
	return res
}

// answer reports whether this is about one answer of the model, not about the run.
func (w *Waiting) answer() bool { return w.Kind == WaitAnswerCut || w.Kind == WaitAnswerBlocked }

// answerStatus is what a run ends as whose last answer ended like this.
func (w *Waiting) answerStatus() string {
	if w.Kind == WaitAnswerCut {
		return "answer_cut"
	}
	return "refused"
}

// unfinished reports whether the run ended with an answer that has no end, and did not say what it concluded in another way.
func (r *Run) unfinished() bool {
	return r.Unfinished != nil && r.Concluded == nil && r.State != RunStopping
}
