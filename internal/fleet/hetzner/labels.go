package hetzner

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/fleet"
)

// labelRunner is a label of servers whose user data created RunnerUser; its value is that login. Servers of older
// versions lack it.
const labelRunner = "errand-runner-login"

// creationLabels returns the labels of a server that gets user data now.
func (a *api) creationLabels(labels map[string]string) map[string]string {
	out := a.withDeploymentLabel(labels)
	if !a.cfg.OneUser {
		out[labelRunner] = RunnerUser
	}
	return out
}

// factsFromLabels returns further data about a server.
func factsFromLabels(labels map[string]string) map[string]string {
	out := map[string]string{fleet.FactHome: Home}
	if labels[labelRunner] == RunnerUser {
		out[fleet.FactRunnerLogin], out[fleet.FactRunnerDir] = RunnerUser, RunnerDir
	}
	return out
}

// withDeploymentLabel adds the deployment's label.
func (a *api) withDeploymentLabel(labels map[string]string) map[string]string {
	out := maps.Clone(labels)
	if out == nil {
		out = map[string]string{}
	}
	out[fleet.LabelDeployment] = a.cfg.Deployment
	return out
}

// labelSelector matches resources that have all of labels.
func labelSelector(labels map[string]string) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		parts = append(parts, key+"=="+labels[key])
	}
	return strings.Join(parts, ",")
}

// checkLabelsMatch returns an error unless the labels match. It ignores the expiry label.
func checkLabelsMatch(has, want map[string]string) error {
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if value, ok := has[key]; key != fleet.LabelNotAfter && (!ok || value != want[key]) {
			return fmt.Errorf("%w: label %s is %q, not %q", fleet.ErrNameTaken, key, has[key], want[key])
		}
	}
	return nil
}

// checkLabels refuses labels that the API would reject.
func checkLabels(labels map[string]string) error {
	for key, value := range labels {
		if !validLabel(key) || value != "" && !validLabel(value) {
			return fmt.Errorf("%w: label %q=%q", fleet.ErrInvalid, key, value)
		}
	}
	return nil
}

// validLabel: 1 to 63 letters and digits, and - _ . inside. The API allows a little more in keys.
func validLabel(s string) bool {
	if s == "" || len(s) > 63 {
		return false
	}
	for i, c := range []byte(s) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		inner := i > 0 && i < len(s)-1 && (c == '-' || c == '_' || c == '.')
		if !letter && !inner {
			return false
		}
	}
	return true
}
