package leak_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/sim/simhetzner"
	"github.com/errand-bot/errand/state"
)

// TestImagesAreReadable: a disk is written before an image is made of it, whether the VM obeys a shutdown or is powered
// off; a VM without login must shut down itself.
func TestImagesAreReadable(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		deaf        bool // it ignores a shutdown
		unreachable bool // login fails
		offAt       int  // it is reported as off in this answer; 0: never
	}{
		"obeys":                             {},
		"powered off":                       {deaf: true},
		"no login":                          {unreachable: true},
		"reported as off":                   {offAt: 1},
		"reported as off, but runs":         {offAt: 2},
		"reported as off, ignores shutdown": {offAt: 2, deaf: true},
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
			w.suspendTask(state.TaskKey{Repo: 1, Issue: 1})
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
