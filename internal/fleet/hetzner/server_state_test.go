package hetzner

import (
	"strings"
	"testing"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud/schema"

	"github.com/errand-bot/errand/internal/fleet"
)

// TestDecideState: the meaning of a server's status, given its actions, newest first.
func TestDecideState(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	done := func(command, status string) schema.Action {
		finished := now.Add(-10 * time.Minute)
		a := schema.Action{Command: command, Status: status, Finished: &finished}
		if status == "error" {
			a.Error = &schema.ActionError{Code: "c", Message: "m"}
		}
		return a
	}
	created, started := done("create_server", "success"), done("start_server", "success")
	tests := map[string]struct {
		status  string
		age     time.Duration
		rebuild string
		actions []schema.Action
		state   fleet.State
		ended   fleet.Reason
		detail  string
	}{
		"boots slowly":            {status: "initializing", actions: []schema.Action{done("create_server", "running")}, state: fleet.StateCreating},
		"nothing known":           {status: "initializing", state: fleet.StateCreating},
		"create failed":           {status: "initializing", actions: []schema.Action{done("create_server", "error")}, state: fleet.StateEnded, ended: fleet.ReasonCreateFailed, detail: "m (c)"},
		"start failed":            {status: "off", actions: []schema.Action{done("start_server", "error"), created}, state: fleet.StateEnded, ended: fleet.ReasonCreateFailed, detail: "start_server"},
		"about to start":          {status: "off", actions: []schema.Action{done("start_server", "running"), created}, state: fleet.StateCreating},
		"between create and go":   {status: "off", actions: []schema.Action{created}, state: fleet.StateCreating},
		"never started":           {status: "off", age: time.Hour, actions: []schema.Action{created}, state: fleet.StateEnded, ended: fleet.ReasonCreateFailed, detail: "never started"},
		"off by itself":           {status: "off", actions: []schema.Action{started, created}, state: fleet.StateEnded, ended: fleet.ReasonIdle},
		"off by itself, then img": {status: "off", actions: []schema.Action{done("create_image", "success"), started}, state: fleet.StateEnded, ended: fleet.ReasonIdle},
		"we shut it down":         {status: "off", actions: []schema.Action{done("shutdown_server", "success"), started}, state: fleet.StateOff},
		"we cut it off":           {status: "off", actions: []schema.Action{done("stop_server", "success"), done("shutdown_server", "success"), started}, state: fleet.StateOff},
		"on its way off":          {status: "stopping", actions: []schema.Action{done("stop_server", "running"), started}, state: fleet.StateOff},
		"started again":           {status: "starting", actions: []schema.Action{done("start_server", "running"), done("stop_server", "success")}, state: fleet.StateCreating},
		"shut down, still up":     {status: "running", actions: []schema.Action{done("shutdown_server", "success"), started}, state: fleet.StateRunning},
		"unknown":                 {status: "unknown", actions: []schema.Action{started}, state: fleet.StateRunning},
		"renamed only":            {status: "running", rebuild: "9", actions: []schema.Action{started, created}, state: fleet.StateCreating},
		"an older rebuild":        {status: "running", rebuild: "9", actions: []schema.Action{{ID: 9, Command: "rebuild_server", Status: "success"}}, state: fleet.StateCreating},
		"being rebuilt":           {status: "rebuilding", rebuild: "9", actions: []schema.Action{{ID: 10, Command: "rebuild_server", Status: "running"}}, state: fleet.StateCreating},
		"rebuilt":                 {status: "running", rebuild: "9", actions: []schema.Action{{ID: 10, Command: "rebuild_server", Status: "success"}}, state: fleet.StateRunning},
		"rebuild failed":          {status: "off", rebuild: "9", actions: []schema.Action{{ID: 10, Command: "rebuild_server", Status: "error"}}, state: fleet.StateEnded, ended: fleet.ReasonCreateFailed},
		"rebuilt, then asleep":    {status: "off", rebuild: "9", actions: []schema.Action{done("stop_server", "success"), {ID: 10, Command: "rebuild_server", Status: "success"}}, state: fleet.StateOff},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := schema.Server{Status: test.status, Created: now.Add(-test.age)}
			if test.rebuild != "" {
				s.Labels = map[string]string{labelRebuild: test.rebuild}
			}
			got := decideState(s, test.actions, now)
			if got.state != test.state || got.ended != test.ended || !strings.Contains(got.detail, test.detail) {
				t.Errorf("it is %s (%s: %s), want %s (%s: %s)", got.state, got.ended, got.detail, test.state, test.ended, test.detail)
			}
		})
	}
}
