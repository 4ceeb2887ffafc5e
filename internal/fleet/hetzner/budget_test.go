package hetzner

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/fleet"
)

func newTestBudget() (*budget, *time.Time) {
	now := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	return newBudget(func() time.Time { return now }, 3600, 30*time.Second), &now
}

func TestBudgetOfAnHour(t *testing.T) {
	t.Parallel()
	b, now := newTestBudget()
	made := 0
	for end := now.Add(time.Hour); now.Before(end); *now = now.Add(500 * time.Millisecond) {
		for b.reserveRequest(false) == nil {
			made++
		}
	}
	if made > 3600 || made < 3300 {
		t.Errorf("got %d requests in an hour", made)
	}
	if err := b.reserveRequest(false); err != nil { // half a second later
		*now = now.Add(time.Second)
		if err := b.reserveRequest(false); err != nil {
			t.Error(err)
		}
	}
}

func TestLowPriorityCallsLeaveAReserve(t *testing.T) {
	t.Parallel()
	b, now := newTestBudget()
	low := 0
	for b.reserveRequest(true) == nil {
		low++
	}
	if low == 0 || low > 300-60+1 {
		t.Errorf("got %d calls that can wait", low)
	}
	if err := b.reserveRequest(false); err != nil {
		t.Errorf("a call that cannot wait: got error %v", err)
	}
	*now = now.Add(10 * time.Minute)
	if err := b.reserveRequest(true); err != nil {
		t.Errorf("later: got error %v", err)
	}
	b.updateFromHeaders(http.Header{"Ratelimit-Remaining": {"599"}}, false) // others use the project
	if err := b.reserveRequest(true); !errors.Is(err, fleet.ErrLimited) {
		t.Errorf("with 599 left: got error %v", err)
	}
	if err := b.reserveRequest(false); err != nil {
		t.Errorf("a call that cannot wait: got error %v", err)
	}
	*now = now.Add(2 * time.Second)
	if err := b.reserveRequest(true); err != nil {
		t.Errorf("two seconds later: got error %v", err)
	}
}

func TestRateLimitResponsePausesCalls(t *testing.T) {
	t.Parallel()
	b, now := newTestBudget()
	b.updateFromHeaders(http.Header{}, true)
	if err := b.reserveRequest(false); !errors.Is(err, fleet.ErrLimited) {
		t.Errorf("immediately: got error %v", err)
	}
	*now = now.Add(30 * time.Second)
	if err := b.reserveRequest(false); err != nil {
		t.Errorf("after the pause: got error %v", err)
	}
}
