package doctor_test

import (
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/doctor"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/state"
)

// Whether errand may run jobs again is a note, never a problem; suspended installations do not matter.
func TestRerunPermission(t *testing.T) {
	t.Parallel()
	more := granted()
	more["actions"] = "write"
	in := func(account string, permissions map[string]string, suspended bool) forge.Installation {
		return forge.Installation{Account: state.Person{Login: account}, Permissions: permissions, Suspended: suspended}
	}
	tests := map[string]struct {
		app  map[string]string
		list []forge.Installation
		want doctor.Status
		text string
	}{
		"granted":             {more, []forge.Installation{in("acme", more, false), in("globex", granted(), true)}, doctor.OK, "errand can re-run failed GitHub Actions jobs."},
		"not requested":       {granted(), []forge.Installation{in("acme", granted(), false)}, doctor.Note, "The App does not request the optional permission actions: write, so"},
		"not accepted by two": {more, []forge.Installation{in("acme", granted(), false), in("globex", more, false), in("initech", nil, false)}, doctor.Note, "cannot re-run their failed GitHub Actions jobs: acme, initech."},
		"no longer requested": {granted(), []forge.Installation{in("acme", more, false)}, doctor.Note, "The App does not request"},
	}
	for name, tt := range tests {
		h := &hub{app: forge.App{ID: 7, Slug: "errand", Permissions: tt.app, Events: forge.Events()}, list: tt.list}
		got := findings(t, h.check(time.Now()), "github.rerun")
		if len(got) != 1 || got[0].Status != tt.want || !strings.Contains(got[0].Found, tt.text) || (got[0].Fix == "") != (tt.want == doctor.OK) {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}
