package config

import (
	"reflect"
	"strings"
)

// renamedKeys maps keys of earlier versions to their replacements.
func renamedKeys() map[string]string {
	return map[string]string{
		"agent.max_turns":      "limits.turns",
		"repository.protected": "gate.protected, and exceptions in gate.unprotected,",
		"protected":            "gate.protected", // in a repository's own file
	}
}

// removedKeys maps keys of earlier versions without a successor to the reason and the current behavior. NAME stands for the
// name of any entry.
func removedKeys() map[string]string {
	const (
		githubPace = "errand keeps to the pace that GitHub asks of Apps, and waits when GitHub says so"
		backoff    = "errand retries an interrupted task after a minute, then after twice as long each time"
		attempts   = "errand launches the same work at most five times in a row; limits.cost and limits.vm_hours bound what that may cost"
	)
	return map[string]string{
		"models.NAME.subscription.client_id": "errand renews a login as Claude Code, for which the login was created",

		"timing.status_gap":      githubPace,
		"timing.settle":          "errand decides how long a revision must exist before an approval without its hash counts",
		"timing.backoff":         backoff,
		"timing.backoff_max":     backoff,
		"timing.recheck":         "errand decides how often a waiting task checks whether it can continue",
		"timing.poll_gap":        "timing.poll_fast and timing.poll_slow set how often reactions are read",
		"timing.progress":        "errand decides how often the progress of a run is stored",
		"timing.retry":           "errand decides when a failed job is retried",
		"timing.reap_grace":      "errand decides how long a VM without a task is kept before it is deleted",
		"timing.writes_burst":    githubPace,
		"timing.writes_every":    githubPace,
		"timing.objects_every":   githubPace,
		"timing.max_attempts":    attempts,
		"timing.unreachable_for": "errand decides when an unreachable VM counts as lost",
		"timing.answer":          "errand decides how long it waits for an answer of GitHub",
		"timing.sleep_before":    "errand archives the work of an idle VM shortly before its paid time (hetzner.billing_period) ends",
		"timing.vm_tick":         "errand decides how often it checks VMs that are being created",
		"timing.gone_after":      "errand decides when an unreachable issue ends its task; timing.sweep sets how often issues are checked",
	}
}

// unknownKeyReason returns the reason why key, which is not a field of t, is refused, and the correction.
func unknownKeyReason(key, name string, t reflect.Type) string {
	if now, ok := renamedKeys()[key]; ok {
		return "this key was replaced; write " + now + " instead"
	}
	if reason, ok := removedKeys()[anyEntry(key)]; ok {
		return "this key was removed: " + reason + ". Delete the line"
	}
	return "this key is unknown; " + suggest(name, t)
}

// anyEntry replaces the name of an entry of models by NAME.
func anyEntry(key string) string {
	path := strings.Split(key, ".")
	if len(path) > 2 && path[0] == "models" {
		path[1] = "NAME"
	}
	return strings.Join(path, ".")
}
