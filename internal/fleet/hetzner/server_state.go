package hetzner

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"
	"github.com/hetznercloud/hcloud-go/v2/hcloud/schema"

	"github.com/errand-bot/errand/internal/fleet"
)

// labelRebuild is the server's newest action before its rebuild was ordered. A server with this label is not the VM of
// its name until a later rebuild has succeeded.
const labelRebuild = "errand-rebuild-after"

const (
	// slowBoot is the age from which the actions of a server that is not up are read; longer for one from a snapshot.
	slowBoot    = time.Minute
	slowRestore = 3 * time.Minute
	// recheckFirst is the initial interval of these reads; it grows with a server's age.
	recheckFirst = 30 * time.Second
	// recheckOff is the interval for a server that is off, which only errand could start.
	recheckOff = 10 * time.Minute
	// neverStarted is the age from which a server that is off, without a start in progress, counts as ended that way.
	neverStarted = 5 * time.Minute
)

// serverState is the meaning of a server's status according to its actions.
type serverState struct {
	state  fleet.State
	ended  fleet.Reason
	detail string

	status  string    // the server's status at that time
	rebuild string    // the value of labelRebuild that is completed
	at      time.Time // time of the judgment
}

// determineState returns the meaning of a server's status. If the status is not sufficient it makes a request: for a
// server that is off, slow to come up or to be rebuilt.
func (v *servers) determineState(ctx context.Context, s schema.Server) (serverState, error) {
	pending := s.Labels[labelRebuild]
	known, ok := v.cachedState(s.ID)
	now := v.cfg.Now()
	if ok && known.rebuild == pending {
		pending = ""
	}
	switch hcloud.ServerStatus(s.Status) {
	case hcloud.ServerStatusDeleting:
		return serverState{state: fleet.StateEnded, ended: fleet.ReasonOperator, detail: "it is being deleted"}, nil
	case hcloud.ServerStatusOff, hcloud.ServerStatusStopping:
	case hcloud.ServerStatusInitializing, hcloud.ServerStatusStarting, hcloud.ServerStatusRebuilding:
		if pending == "" && now.Sub(s.Created) < bootAllowance(s) {
			return serverState{state: fleet.StateCreating}, nil
		}
	default: // running, migrating and unknown do not indicate an end
		if pending == "" {
			return serverState{state: fleet.StateRunning}, nil
		}
	}
	if ok && pending == "" && known.status == s.Status && now.Sub(known.at) < known.validity(now.Sub(s.Created)) {
		return known, nil
	}
	actions, err := v.actions(ctx, s.ID)
	if err != nil {
		return serverState{}, err
	}
	j := decideState(s, actions, now)
	v.cacheState(s.ID, j)
	return j, nil
}

// bootAllowance is the age from which a server that is not up needs an explanation.
func bootAllowance(s schema.Server) time.Duration {
	if s.Image != nil && s.Image.Type == "snapshot" {
		return slowRestore
	}
	return slowBoot
}

// validity is how long a judgment about a server of this age is valid.
func (j serverState) validity(age time.Duration) time.Duration {
	if j.state == fleet.StateCreating {
		return max(recheckFirst, age/4)
	}
	return recheckOff
}

// actions returns a server's actions, newest first. It reads only the newest page, which is sufficient.
func (a *api) actions(ctx context.Context, server int64) ([]schema.Action, error) {
	out, _, err := call[schema.ActionListResponse](ctx, a, request{
		method: http.MethodGet, path: formatPath("/servers/%d/actions", server),
		query: url.Values{"sort": {"id:desc"}, "per_page": {strconv.Itoa(perPage)}},
	})
	slices.SortFunc(out.Actions, func(a, b schema.Action) int { return int(b.ID - a.ID) })
	return out.Actions, err
}

// decideState decides by a server's status and its actions, newest first. It is a pure function.
func decideState(s schema.Server, actions []schema.Action, now time.Time) serverState {
	j := serverState{status: s.Status, at: now, rebuild: s.Labels[labelRebuild], state: fleet.StateRunning}
	if after, err := strconv.ParseInt(s.Labels[labelRebuild], 10, 64); err == nil {
		rebuilt := newestAction(actions, "rebuild_server")
		switch {
		case rebuilt == nil || rebuilt.ID <= after || rebuilt.Status == "running":
			j.state, j.rebuild = fleet.StateCreating, "" // read again next time
			return j
		case rebuilt.Status == "error":
			return j.explainFailure(rebuilt)
		}
	}
	last := newestAction(actions, "create_server", "start_server", "rebuild_server", "stop_server", "shutdown_server", "reboot_server", "reset_server")
	up := s.Status == string(hcloud.ServerStatusRunning) || s.Status == string(hcloud.ServerStatusMigrating) ||
		s.Status == string(hcloud.ServerStatusUnknown)
	switch {
	case up:
	case last == nil:
		j.state = fleet.StateCreating
	case last.Status == "error" && (last.Command == "create_server" || last.Command == "start_server" || last.Command == "rebuild_server"):
		return j.explainFailure(last)
	case s.Status != string(hcloud.ServerStatusOff) && s.Status != string(hcloud.ServerStatusStopping):
		j.state = fleet.StateCreating
	default:
		return j.explainOff(s, last, now)
	}
	return j
}

func (j serverState) explainFailure(a *schema.Action) serverState {
	j.state, j.ended, j.detail = fleet.StateEnded, fleet.ReasonCreateFailed, a.Command+" failed"
	if a.Error != nil {
		j.detail = fmt.Sprintf("%s: %s (%s)", a.Command, a.Error.Message, a.Error.Code)
	}
	return j
}

// explainOff determines why a server is off from the last action that affected its power.
func (j serverState) explainOff(s schema.Server, last *schema.Action, now time.Time) serverState {
	switch last.Command {
	case "stop_server", "shutdown_server":
		j.state = fleet.StateOff
	case "create_server", "rebuild_server":
		j.state = fleet.StateCreating
		if last.Status != "running" && now.Sub(s.Created) > neverStarted && (last.Finished == nil || now.Sub(*last.Finished) > neverStarted) {
			j.state, j.ended, j.detail = fleet.StateEnded, fleet.ReasonCreateFailed, "it was created, but never started"
		}
	default:
		j.state = fleet.StateCreating
		if last.Status != "running" {
			j.state, j.ended, j.detail = fleet.StateEnded, fleet.ReasonIdle, "it has powered itself off"
		}
	}
	return j
}

func newestAction(actions []schema.Action, commands ...string) *schema.Action {
	for i, a := range actions {
		if slices.Contains(commands, a.Command) {
			return &actions[i]
		}
	}
	return nil
}

func (v *servers) cachedState(server int64) (serverState, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	j, ok := v.states[server]
	return j, ok
}

func (v *servers) cacheState(server int64, j serverState) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.states[server] = j
}

// dropState invalidates a server's judgment after a change.
func (v *servers) dropState(server int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.states, server)
}

// dropUnlistedStates drops the judgments of servers that are missing in a complete list of this deployment.
func (v *servers) dropUnlistedStates(listed map[int64]bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	maps.DeleteFunc(v.states, func(id int64, _ serverState) bool { return !listed[id] })
	maps.DeleteFunc(v.cachedServers, func(id int64, _ cachedServer) bool { return !listed[id] })
}
