package leak_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/sim/simhetzner"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/vm"
)

// TestLongFailuresLeakNothing: a server whose deletion fails for an hour is deleted afterwards, even if errand restarts
// meanwhile, and a VM in use survives the same failures.
func TestLongFailuresLeakNothing(t *testing.T) {
	t.Parallel()
	one, list := "^/servers/[0-9]+$", "^/servers$"
	for name, lies := range map[string][]simhetzner.Fault{
		"requests by ID get 500":          {{Method: http.MethodGet, Path: one, Status: 500, For: time.Hour}},
		"all reads get 500":               {{Method: http.MethodGet, Path: one, Status: 500, For: time.Hour}, {Method: http.MethodGet, Path: list, Status: 500, For: time.Hour}},
		"deletions get 500":               {{Method: http.MethodDelete, Path: one, Status: 500, For: time.Hour}},
		"deletions are refused":           {{Method: http.MethodDelete, Path: one, Code: "forbidden", For: time.Hour}},
		"deletions fail later":            {{Method: http.MethodDelete, Path: one, ActionCode: "action_failed", For: time.Hour}},
		"deletions fail, lists are empty": {{Method: http.MethodDelete, Path: one, Code: "not_found", For: time.Hour}, {Method: http.MethodGet, Path: list, Hide: ".", For: time.Hour}},
		"rate limit exceeded":             {{Path: ".", Code: "rate_limit_exceeded", For: time.Hour}},
	} {
		for how, leave := range map[string]func(*world, *state.Task){
			"asleep": func(w *world, task *state.Task) { w.sleeps(w.contextFor(time.Hour), task) },
			"done":   func(w *world, task *state.Task) { w.end(w.contextFor(time.Hour), task) },
			"busy":   func(*world, *state.Task) {},
		} {
			for _, again := range []bool{false, true} {
				t.Run(how+", "+name+map[bool]string{true: ", restarts"}[again], func(t *testing.T) {
					t.Parallel()
					w, task, server := newTruthfulWorld(t)
					w.reuse = false
					w.start()
					vmName := task.VM.Name
					if how == "asleep" { // so that the failures concern the deletion
						w.rest(w.process, task)
						if _, err := w.fleet.Snapshot(w.contextFor(time.Hour), vmName); err != nil {
							t.Fatal(err)
						}
					}
					for _, lie := range lies {
						w.lie(lie)
					}
					leave(w, task)
					for i := range 24 {
						w.runs(5 * time.Minute)
						if again && i == 5 {
							w.fleet.Close()
							w.start()
						}
						if _, there := w.server(server.ID); there && !w.row(vmName).EndedAt.IsZero() {
							t.Fatalf("the server exists, but its row's bill is closed: %+v", w.row(vmName))
						}
					}
					_, there := w.server(server.ID)
					if row := w.row(vmName); there != (how == "busy") || row.EndedAt.IsZero() != there || how == "busy" && row.Phase != vm.Busy {
						t.Errorf("an hour later the server exists: %v; its row is %+v", there, row)
					}
					if images := w.sim.Objects("image"); len(images) != map[string]int{"asleep": 1}[how] {
						t.Errorf("images are %+v", images)
					}
					var spans int64
					day, month, err := w.store.VMs.Spent(w.process, w.clock.Now())
					if row := w.row(vmName); err == nil {
						spans = row.Spans(w.clock.Now())
					}
					if err != nil || day.VMs != 1 || month.VMs != 1 || month.Spans != spans || spans < 2 {
						t.Errorf("billed: %+v, %+v (%v); %d hours have begun", day, month, err, spans)
					}
				})
			}
		}
	}
}
