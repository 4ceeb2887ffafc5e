package e2e

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/internal/fleet/local"
	"github.com/errand-bot/errand/internal/sim/simhetzner"
)

// cloudHaste is the factor by which the simulator is faster than the real cloud.
const cloudHaste = 60

// useCloud makes VMs servers of the Hetzner simulator, with the limits in text: the number of servers of the account and, after a
// colon, the hours of a task.
func useCloud(ts *testscript.TestScript, cfg *demo.Config, text string) {
	servers, hours, limited := strings.Cut(text, ":")
	most, err := strconv.Atoi(servers)
	ts.Check(err)
	if limited {
		cfg.VMHours, err = strconv.Atoi(hours)
		ts.Check(err)
	}
	took := simhetzner.Scaled(cloudHaste)
	cfg.Provider, cfg.Kind, cfg.Took = demo.ProviderHetzner, local.KindAuto, &took
	cfg.Account = func(c *simhetzner.Config) { c.Quota.Servers, c.Period = most, time.Hour }
	cfg.Timing.VMTick, cfg.Timing.VMQueue = 100*time.Millisecond, 50*time.Millisecond
}

// serversOwned: every server belongs to a task.
func (s *story) serversOwned() []string {
	owned := map[string]bool{}
	for _, t := range s.tasks() {
		if t.VM != nil {
			owned[t.VM.Name] = true
		}
	}
	var bad []string
	for _, o := range s.w.Cloud.Objects("server") {
		if !owned[o.Name] {
			bad = append(bad, fmt.Sprintf("server %s (%s) belongs to no task", o.Name, o.Status))
		}
	}
	return bad
}
