package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/state/kv/boltkv"
	"github.com/errand-bot/errand/state/store"
	"github.com/errand-bot/errand/state/vm"
)

// TestReapNamesImagesOfRemovedGroups: base images of groups that are not configured are deleted, whether or not other
// groups are configured, and the others' images are kept.
func TestReapNamesImagesOfRemovedGroups(t *testing.T) {
	t.Parallel()
	for what, test := range map[string]struct {
		config string
		want   int
	}{
		"one is left":  {"bake: {web: {repos: [acme/shop]}}\n", 1},
		"none is left": {"", 2},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			a := newAccount(t, test.config)
			a.knowsVMs()
			a.post("/servers", `{"name":"template","server_type":"cx23","location":"fsn1","image":"debian-13","start_after_create":false}`)
			for i, group := range []string{"web", "app"} {
				a.idle()
				a.post(fmt.Sprintf("/servers/%d/actions/create_image", a.sim.Objects("server")[0].ID),
					`{"type":"snapshot","labels":{"errand-deployment":"mine","errand-kind":"base","errand-group":"`+group+`"}}`)
				if n := len(a.sim.Objects("image")); n != i+1 {
					t.Fatalf("%d images", n)
				}
			}
			a.idle()
			a.young.Store(true)
			code, out, err := a.reap("--dry-run")
			if code != 0 || strings.Count(out, "would delete") != test.want || !strings.Contains(out, `of the group "app"`) {
				t.Errorf("%d\n%s%s", code, out, err)
			}
		})
	}
}

// idle waits until the simulator has no actions in progress.
func (a *account) idle() {
	a.t.Helper()
	for {
		a.sim.Settle()
		if _, busy := a.sim.NextEvent(); !busy {
			return
		}
		select {
		case <-a.t.Context().Done():
			a.t.Fatal("something is under way for ever")
		case <-time.After(time.Millisecond):
		}
	}
}

// knowsVMs stores a VM that was intended before everything else.
func (a *account) knowsVMs() {
	a.t.Helper()
	db, err := boltkv.Open(filepath.Join(a.data, "errand.db"), boltkv.Options{})
	if err != nil {
		a.t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	st, err := store.Open(a.t.Context(), db, store.Options{Now: func() time.Time { return time.Now().Add(-2 * time.Hour) }})
	if err != nil {
		a.t.Fatal(err)
	}
	if _, err := st.VMs.Intend(a.t.Context(), vm.Intent{Name: "first", Owner: "first", Provider: "hetzner"}, vm.Caps{}); err != nil {
		a.t.Fatal(err)
	}
}
