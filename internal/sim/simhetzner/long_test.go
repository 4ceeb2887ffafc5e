package simhetzner_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/sim/simhetzner"
)

// TestLongRun: after many lives the bill has all of them, and the number of stored actions is bounded.
func TestLongRun(t *testing.T) {
	t.Parallel()
	clock := simhetzner.NewClock(start)
	sim := simhetzner.New(simhetzner.Config{Now: clock.Now, RateLimit: -1})
	ask := func(method, path, body string, out any) {
		w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), method, "/v1"+path, strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer any")
		sim.ServeHTTP(w, r)
		if w.Code >= http.StatusBadRequest {
			t.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
		}
		if err := json.Unmarshal(w.Body.Bytes(), out); err != nil {
			t.Fatal(err)
		}
	}
	const lives = 750
	for i := range lives {
		var made struct{ Server struct{ ID int64 } }
		ask("POST", "/servers", fmt.Sprintf(`{"name":"vm-%d","server_type":"cx43","image":"debian-13","location":"fsn1"}`, i), &made)
		clock.Advance(time.Minute)
		ask("DELETE", fmt.Sprintf("/servers/%d", made.Server.ID), "", &made)
		clock.Advance(time.Minute)
	}
	if left := sim.Objects(""); len(left) != 0 {
		t.Errorf("got remaining objects: %+v", left)
	}
	if got := sim.Bill(); got.Micro != lives*(cx43+ipv4) || len(got.Lines) != 3*lives {
		t.Errorf("got %d lines for %d servers", len(got.Lines), got.Micro)
	}
	var page struct {
		Meta struct {
			Pagination struct {
				TotalEntries int `json:"total_entries"`
			}
		}
	}
	ask("GET", "/servers/actions", "", &page)
	if got := page.Meta.Pagination.TotalEntries; got == 0 || got > 2_000 {
		t.Errorf("got %d stored actions", got)
	}
	if _, total := sim.Counts(); total != 2*lives+1 {
		t.Errorf("got %d counted requests", total)
	}
}
