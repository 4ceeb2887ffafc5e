package state

// knownBetter puts the gateway's reason for not passing on a call of the run in the place of what was made of its program's
// words, where that explains the end of the run. The judgement itself stays.
func (r *Run) knownBetter(res RunResult) RunResult {
	if r.Denied != "" && res.Class != "success" && byTheModel(res.Status) {
		res.Message = r.Denied
	}
	return res
}

// byTheModel reports whether a run with this status may have ended because it did not reach the model. Programs make
// anything of a refusal.
func byTheModel(status string) bool {
	switch status {
	case "budget", "rate_limited", "overloaded", "network", "auth", "billing", StatusContextOverflow, "refused", "no_structured_output", "no_op", "invalid", "crashed":
		return true
	}
	return false
}
