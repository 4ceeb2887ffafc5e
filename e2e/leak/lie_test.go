package leak_test

import (
	"net/http"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/sim/simhetzner"
)

// drawFalseAnswer randomly chooses a false answer to a request. The caller holds w.mu.
func (w *world) drawFalseAnswer(r *http.Request) (simhetzner.Fault, bool) {
	f := simhetzner.Fault{Method: r.Method, Path: "^" + strings.TrimPrefix(r.URL.Path, "/v1") + "$", Count: 1}
	list := r.URL.Path == "/v1/servers" || r.URL.Path == "/v1/images"
	one := oneOfThem.FindStringSubmatch(r.URL.Path)
	if strings.HasSuffix(r.URL.Path, "/actions/shutdown") && w.odds.deaf > 0 && w.chance(w.odds.deaf, "shutdown not obeyed") {
		f.Deaf = true
		return f, true
	}
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
		lies = []simhetzner.Fault{{Code: "not_found"}, {ActionCode: "action_failed"}, {ActionCode: "action_failed", Claim: "success"}, {ActionCode: "action_failed", Claim: "error"}, {Slow: 2 * time.Minute, Claim: "success"}}
	case r.Method == http.MethodDelete:
		lies = []simhetzner.Fault{{Code: "not_found"}}
	default:
		return f, false
	}
	often := 1
	if r.Method == http.MethodDelete { // because deletions are rare
		often = 4
	}
	if !w.chance(often*w.odds.lie, "answer false") {
		return f, false
	}
	lie := lies[w.dice.IntN(len(lies))]
	f.Code, f.Claim, f.Hide, f.ActionCode, f.Slow = lie.Code, lie.Claim, lie.Hide, lie.ActionCode, lie.Slow
	return f, true
}

// hideServer changes a request for a server by name or ID so that the server is not found, if the world is blind.
func (w *world) hideServer(r *http.Request) *http.Request {
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
