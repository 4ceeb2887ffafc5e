package leak_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/sim/simhetzner"
	"github.com/errand-bot/errand/state"
)

// TestImagesAreReadable wants a disk to be written before it is imaged, whether the VM shuts down when it is told to or
// has to be cut off, and one that cannot be logged into to shut down by itself.
func TestImagesAreReadable(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		deaf        bool // it does not obey a shutdown
		unreachable bool // it cannot be logged into
		offAt       int  // it is said to be off at this answer about it; 0: never
	}{
		"it obeys":                 {},
		"it is cut off":            {deaf: true},
		"it cannot be logged into": {unreachable: true},
		"it is said to be off":     {offAt: 1},
		"and again, and runs":      {offAt: 2},
		"and is not obeyed":        {offAt: 2, deaf: true},
	}
	for what, test := range tests {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 1, chances{})
			w.start()
			w.unreachable = test.unreachable
			if test.deaf {
				if err := w.sim.Fault(simhetzner.Fault{Method: http.MethodPost, Path: "/actions/shutdown$", Deaf: true}); err != nil {
					t.Fatal(err)
				}
			}
			if test.offAt > 0 {
				if err := w.sim.Fault(simhetzner.Fault{Method: http.MethodGet, Path: "^/servers/[0-9]+$", Claim: "off", Nth: test.offAt, Count: 1}); err != nil {
					t.Fatal(err)
				}
			}
			w.asleep(state.TaskKey{Repo: 1, Issue: 1})
			w.clock.Advance(time.Minute)
			images := w.sim.Objects("image")
			if len(images) != 1 || images[0].Inconsistent || images[0].Status != "available" {
				t.Errorf("images are %+v", images)
			}
			for _, wrong := range w.wrongs {
				t.Error(wrong)
			}
		})
	}
}
