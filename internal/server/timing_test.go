package server

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/state/machine"
)

// TestTimingReachesTheStateMachine: what no operator sets comes from Timing, the rest from the configuration, and without
// either everything has the value of production.
func TestTimingReachesTheStateMachine(t *testing.T) {
	t.Parallel()
	s := &Server{cfg: config.Default(), opts: Options{}.withDefaults()}
	p := s.policy()
	p.Models = nil // none are offered besides the configured ones
	want := machine.DefaultPolicy()
	want.VMHours = time.Duration(s.cfg.Limits.VMHours) * time.Hour
	if diff := cmp.Diff(want, p); diff != "" {
		t.Errorf("production (-want +got):\n%s", diff)
	}
	s.cfg.Timing.Gather, s.cfg.Timing.IdleVM, s.cfg.Keep.AfterEnd, s.cfg.Keep.Asleep = 1, 2, 3, 4
	s.opts.Timing = &Timing{StatusGap: 5, GatherTalk: 12, GatherMax: 13, Settle: 6, Backoff: 7, BackoffMax: 8, Recheck: 9, MaxAttempts: 10, SleepBefore: 11, DraftWait: 12}
	p = s.policy()
	p.Models = nil
	want = machine.Policy{Gather: 1, IdleVM: 2, KeepAfterEnd: 3, KeepAsleep: 4, StatusGap: 5, GatherTalk: 12, GatherMax: 13, SettleFor: 6, Backoff: 7, BackoffMax: 8, Recheck: 9, MaxAttempts: 10, SleepBefore: 11, DraftWait: 12, VMHours: want.VMHours}
	if diff := cmp.Diff(want, p); diff != "" {
		t.Errorf("set (-want +got):\n%s", diff)
	}
}

// TestDefaultTimingIsComplete: no interval is zero in production.
func TestDefaultTimingIsComplete(t *testing.T) {
	t.Parallel()
	v := reflect.ValueOf(DefaultTiming())
	for i := range v.NumField() {
		if v.Field(i).Int() <= 0 {
			t.Errorf("%s is %v", v.Type().Field(i).Name, v.Field(i))
		}
	}
}
