package doctor

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/state"
)

func TestPauseCheck(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		list []state.Pause
		err  error
		want []Finding
	}{
		"nothing":    {want: []Finding{{Check: "pause", Status: OK, Found: "Neither errand nor a repository is paused."}}},
		"unreadable": {err: errors.New("disk"), want: []Finding{{Check: "pause", Status: Skipped, Found: "The pauses cannot be read: disk"}}},
		"both": {list: []state.Pause{{Since: since, By: "token", Reason: "new disk"}, {Repo: 7, Name: "acme/shop", Since: since, By: "browser session 1"}}, want: []Finding{
			{Check: "pause", Status: Warning, Found: "errand is paused since 2026-11-21 12:00 UTC (for 2 h 00 min), by token: new disk", Meaning: "No new run starts, and tasks wait for the operator.", Fix: "`errand resume`"},
			{Check: "pause", Status: Warning, Found: "acme/shop is paused since 2026-11-21 12:00 UTC (for 2 h 00 min), by browser session 1", Meaning: "No new run starts there, and its tasks wait for the operator.", Fix: "`errand resume acme/shop`"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check := PauseCheck(func(context.Context) ([]state.Pause, error) { return c.list, c.err }, func() time.Time { return since.Add(2 * time.Hour) })
			if d := cmp.Diff(c.want, check(t.Context())); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}
