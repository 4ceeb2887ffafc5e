package leak_test

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/errand-bot/errand/internal/sim/simhetzner"
	"github.com/errand-bot/errand/state"
)

var oneOfThem = regexp.MustCompile(`^/v1/(servers|images)/([0-9]+)$`)

// lieAbout says how the answer to a request is false, if the dice want it. w.mu is held.
func (w *world) lieAbout(r *http.Request) (simhetzner.Fault, bool) {
	f := simhetzner.Fault{Method: r.Method, Path: "^" + strings.TrimPrefix(r.URL.Path, "/v1") + "$", Count: 1}
	list := r.URL.Path == "/v1/servers" || r.URL.Path == "/v1/images"
	one := oneOfThem.FindStringSubmatch(r.URL.Path)
	if w.odds.lie == 0 || !list && one == nil || r.Method == http.MethodPost {
		return f, false
	}
	var lies []simhetzner.Fault
	switch {
	case list:
		lies = []simhetzner.Fault{{Hide: "."}, {Claim: map[bool]string{true: "off", false: "unavailable"}[r.URL.Path == "/v1/servers"]}}
	case r.Method == http.MethodGet && one[1] == "servers":
		lies = []simhetzner.Fault{{Code: "not_found"}, {Claim: "off"}, {Claim: "deleting"}}
	case r.Method == http.MethodGet:
		lies = []simhetzner.Fault{{Code: "not_found"}, {Claim: "unavailable"}, {Claim: "creating"}}
	case r.Method == http.MethodDelete && one[1] == "servers":
		lies = []simhetzner.Fault{{Code: "not_found"}, {ActionCode: "action_failed"}, {ActionCode: "action_failed", Claim: "success"}}
	case r.Method == http.MethodDelete:
		lies = []simhetzner.Fault{{Code: "not_found"}}
	default:
		return f, false
	}
	if !w.roll(w.odds.lie, "answer false") {
		return f, false
	}
	lie := lies[w.dice.IntN(len(lies))]
	f.Code, f.Claim, f.Hide, f.ActionCode = lie.Code, lie.Claim, lie.Hide, lie.ActionCode
	return f, true
}

// blinded has a server that is asked for by its name or id not be found, if the world is so.
func (w *world) blinded(r *http.Request) *http.Request {
	one := oneOfThem.FindStringSubmatch(r.URL.Path)
	byName := r.URL.Query().Get("name") != "" && r.URL.Path == "/v1/servers"
	if !w.blind || r.Method != http.MethodGet || !byName && (one == nil || one[1] != "servers") {
		return r
	}
	q := r.URL.Query()
	r = r.Clone(r.Context())
	if byName {
		q.Set("name", "nobody")
		r.URL.RawQuery = q.Encode()
	} else {
		r.URL.Path = "/v1/servers/999999999"
	}
	return r
}

// watch notes a deletion of what a task has and has not let go.
func (w *world) watch(r *http.Request) {
	one := oneOfThem.FindStringSubmatch(r.URL.Path)
	if one == nil || r.Method != http.MethodDelete {
		return
	}
	for key, task := range w.store.tasks {
		switch {
		case one[1] == "images":
			if a := task.Asleep; a != nil && a.Ref == one[2] && !w.letting[a.Ref] {
				w.wrong("image %s is deleted, and task %s sleeps as it", one[2], key)
			}
		case task.VM != nil && !w.letting[task.VM.Name]:
			row, err := w.store.VMRow(context.Background(), task.VM.Name)
			if err == nil && row.ID == one[2] && row.Phase != state.VMAsleep { // that one has an image by now
				w.wrong("server %s is deleted, and task %s has it", one[2], key)
			}
		}
	}
}

func (w *world) wrong(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrongs = append(w.wrongs, fmt.Sprintf(format, args...))
}

// judgeImage notes what is wrong with the image as which a task's VM has been put to sleep.
func (w *world) judgeImage(t *state.Task, ref string) {
	row, err := w.store.VMRow(context.Background(), t.VM.Name) // errand may have been killed meanwhile
	if err != nil {
		w.t.Fatal(err)
	}
	for _, o := range w.sim.Objects("image") {
		if fmt.Sprint(o.ID) != ref {
			continue
		}
		if o.Created.Before(w.worked[t.VM.Name]) {
			w.wrong("task %s sleeps as image %s of %s; it worked at %s", t.Key, ref, o.Created, w.worked[t.VM.Name])
		}
		if fmt.Sprint(o.Server) != row.ID || o.Inconsistent {
			w.wrong("task %s sleeps as image %s of server %d, inconsistent: %v; it had server %s", t.Key, ref, o.Server, o.Inconsistent, row.ID)
		}
	}
}
