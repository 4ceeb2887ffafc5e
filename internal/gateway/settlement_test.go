package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/gateway/gatewaytest"
	"github.com/errand-bot/errand/internal/modelapi"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/store"
)

var errDisk = errors.New("no space left on device")

// bank is a ledger and a journal of one task: booking a call deletes its reservation.
type bank struct {
	ledger

	rows       map[string]store.Reservation
	failBefore map[string]int // how often an operation fails from now on, without an effect
	failAfter  map[string]int // how often it fails from now on, with its effect
	operations []string       // operations, in their order
}

func newBank() *bank {
	return &bank{rows: map[string]store.Reservation{}, failBefore: map[string]int{}, failAfter: map[string]int{}}
}

// do runs one operation, which may fail.
func (b *bank) do(op string, effect func() error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.operations = append(b.operations, op)
	if b.failBefore[op] > 0 {
		b.failBefore[op]--
		return errDisk
	}
	err := effect()
	if b.failAfter[op] > 0 {
		b.failAfter[op]--
		return errDisk
	}
	return err
}

func (b *bank) Reserve(_ context.Context, r store.Reservation) error {
	return b.do("reserve", func() error { b.rows[r.ID] = r; return nil })
}

func (b *bank) Release(_ context.Context, id string) error {
	return b.do("release", func() error { delete(b.rows, id); return nil })
}

func (b *bank) All(context.Context) ([]store.Reservation, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Values(b.rows)), nil
}

func (b *bank) Record(_ context.Context, u UsageRecord) error {
	run, call, m, wait := u.Run, u.Reservation, u.Cost, u.Wait
	if wait != nil && call == "" {
		return nil
	}
	return b.do("spend", func() error {
		if _, ok := b.rows[call]; !ok {
			return fmt.Errorf("reservation %q: %w", call, store.ErrSpent)
		}
		delete(b.rows, call)
		b.booked, b.runs = append(b.booked, m), append(b.runs, run)
		return nil
	})
}

// left returns the booked costs and the number of reservations.
func (b *bank) left() ([]state.Money, int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.booked), len(b.rows)
}

// newBankEnd returns an end that books with the bank, and whose model gives this answer.
func newBankEnd(t *testing.T, b *bank, status int, body string) *vmEnd {
	t.Helper()
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = b.do("model", func() error { return nil })
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(model.Close)
	return newVMEnd(t, someTask(), func(c *Config) {
		c.Providers["anthropic"] = Provider{BaseURL: model.URL, Key: modelKey, Header: "X-Api-Key", API: modelapi.Anthropic}
		c.Prices = modelapi.Prices{"claude": {Input: 3, Output: 15, CacheRead: 0.3}}
		c.Ledger, c.Journal = b, b
	})
}

var oneAnswer = state.Money{InputTokens: 1010, OutputTokens: 100, MicroUSD: 4503}

// TestReservationIsStoredFirst: the reservation is stored before the provider gets the call, and is deleted when the
// call is booked or was free.
func TestReservationIsStoredFirst(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		status     int
		path, body string
		want       []string
		booked     []state.Money
	}{
		"answered":                       {200, modelPath, usageLine, []string{"reserve", "model", "spend"}, []state.Money{oneAnswer}},
		"refused by the provider":        {529, modelPath, usageLine, []string{"reserve", "model", "release"}, nil},
		"of an unreachable provider":     {200, "/llm/gone/v1/messages", "", []string{"reserve", "release"}, nil},
		"counting tokens, which is free": {200, modelPath + "/count_tokens", `{"input_tokens":5}`, []string{"model"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBank()
			w := newBankEnd(t, b, test.status, test.body)
			send(t, webtest.Client(), http.MethodPost, w.url+test.path, gatewaytest.Bearer(runToken))
			w.close() // the program may have the answer before the call is settled
			booked, rows := b.left()
			if diff := cmp.Diff(test.want, b.operations); diff != "" {
				t.Errorf("operations (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.booked, booked); diff != "" || rows > 0 {
				t.Errorf("%d reservations are left; booked (-want +got):\n%s", rows, diff)
			}
		})
	}
}

// TestCallWithoutReservationIsNotMade: no call is made while reservations cannot be stored; one that may or may not be
// stored is deleted.
func TestCallWithoutReservationIsNotMade(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(b *bank){
		"a full disk":       func(b *bank) { b.failBefore["reserve"] = 1 },
		"a lost answer":     func(b *bank) { b.failAfter["reserve"] = 1 },
		"and again, at its": func(b *bank) { b.failAfter["reserve"], b.failBefore["release"] = 1, 2 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBank()
			fail(b)
			w := newBankEnd(t, b, 200, usageLine)
			runHandler(t, w.gateway)
			status, _ := send(t, webtest.Client(), http.MethodPost, w.url+modelPath, gatewaytest.Bearer(runToken))
			if status != http.StatusBadGateway {
				t.Errorf("got status %d without a reservation", status)
			}
			b.wait(t, w.gateway, nil)
			if status, _ = send(t, webtest.Client(), http.MethodPost, w.url+modelPath, gatewaytest.Bearer(runToken)); status != 200 {
				t.Errorf("got status %d afterwards", status)
			}
			b.wait(t, w.gateway, []state.Money{oneAnswer})
		})
	}
}

// runHandler retries settlements until the test ends.
func runHandler(t *testing.T, h *Gateway) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = h.Run(ctx) })
	t.Cleanup(func() { cancel(); wg.Wait() })
}

// wait waits until there are no reservations and no calls in flight, and checks what was booked.
func (b *bank) wait(t *testing.T, h *Gateway, want []state.Money) {
	t.Helper()
	every := time.NewTicker(10 * time.Millisecond)
	defer every.Stop()
	for range every.C {
		booked, rows := b.left()
		if rows > 0 || len(booked) < len(want) || h.InFlightCost() != (state.Money{}) {
			if t.Context().Err() != nil {
				t.Fatal("timeout")
			}
			continue
		}
		if diff := cmp.Diff(want, booked); diff != "" {
			t.Fatalf("booked (-want +got):\n%s", diff)
		}
		return
	}
}

// TestCallsAreBookedOnce: a call that cannot be booked is booked later, and one that may or may not be booked is not
// booked twice. Meanwhile its cost counts towards the caps.
func TestCallsAreBookedOnce(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(b *bank){
		"a full disk":              func(b *bank) { b.failBefore["spend"] = 3 },
		"a lost answer":            func(b *bank) { b.failAfter["spend"] = 1 },
		"a lost answer, then full": func(b *bank) { b.failAfter["spend"], b.failBefore["spend"] = 2, 1 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBank()
			w := newBankEnd(t, b, 200, usageLine)
			fail(b)
			for range 2 {
				send(t, webtest.Client(), http.MethodPost, w.url+modelPath, gatewaytest.Bearer(runToken))
			}
			if got := w.gateway.InFlightCost().MicroUSD; b.failBefore["spend"] > 0 && got != 2*oneAnswer.MicroUSD {
				t.Errorf("got %d not yet booked counts towards the caps", got)
			}
			runHandler(t, w.gateway)
			b.wait(t, w.gateway, []state.Money{oneAnswer, oneAnswer})
		})
	}
}

// TestLostCallsAreBookedAtTheStart: calls that were in flight when errand died are booked at the next start, by the
// length of the request and by the time since then, up to the output limit.
func TestLostCallsAreBookedAtTheStart(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		row  store.Reservation
		want state.Money
	}{
		"at once":                              {store.Reservation{At: now, Provider: "anthropic", Model: "claude-x", Input: 1000, Output: 32000}, state.Money{InputTokens: 1000, OutputTokens: 1000, MicroUSD: 18000}},
		"ten seconds ago":                      {store.Reservation{At: now.Add(-10 * time.Second), Provider: "anthropic", Model: "claude-x", Input: 1000, Output: 32000}, state.Money{InputTokens: 1000, OutputTokens: 3000, MicroUSD: 48000}},
		"yesterday":                            {store.Reservation{At: now.Add(-24 * time.Hour), Provider: "anthropic", Model: "claude-x", Input: 1000, Output: 32000}, state.Money{InputTokens: 1000, OutputTokens: 32000, MicroUSD: 483000}},
		"a bound":                              {store.Reservation{At: now, Provider: "anthropic", Model: "claude-x", Input: 1000, Output: 10}, state.Money{InputTokens: 1000, OutputTokens: 10, MicroUSD: 3150}},
		"a clock set":                          {store.Reservation{At: now.Add(time.Hour), Provider: "anthropic", Model: "claude-x", Input: 1000, Output: 2000}, state.Money{InputTokens: 1000, OutputTokens: 2000, MicroUSD: 33000}},
		"of a provider that is not configured": {store.Reservation{At: now, Provider: "other", Model: "mystery", Input: 1000, Output: 10}, state.Money{InputTokens: 1000, OutputTokens: 10, MicroUSD: 3150, Unpriced: "mystery"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBank()
			test.row.ID, test.row.Run, test.row.Task = "a", run, someTask().Key
			b.rows["a"] = test.row
			h := New(Config{
				Ledger: b, Journal: b, Now: func() time.Time { return now }, Log: zerolog.Nop(),
				Providers: map[string]Provider{"anthropic": {API: modelapi.Anthropic}}, Prices: modelapi.Prices{"claude": {Input: 3, Output: 15}},
			})
			if err := h.Recover(t.Context()); err != nil {
				t.Fatal(err)
			}
			booked, rows := b.left()
			if diff := cmp.Diff([]state.Money{test.want}, booked); diff != "" || rows > 0 || b.runs[0] != run {
				t.Errorf("%d reservations are left; booked for %v (-want +got):\n%s", rows, b.runs, diff)
			}
		})
	}
}

// TestRecoveryIsRetried: errand starts even if the store fails; unsettled calls count, and are booked when the store
// works.
func TestRecoveryIsRetried(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBank()
		for _, id := range []string{"a", "b"} {
			b.rows[id] = store.Reservation{ID: id, Run: run, Task: someTask().Key, At: time.Now(), Model: "claude-x", Input: 1000, Output: 10}
		}
		b.failBefore["spend"] = 3
		h := New(Config{Ledger: b, Journal: b, Log: zerolog.Nop(), Prices: modelapi.Prices{"claude": {Input: 3, Output: 15}}})
		if err := h.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := h.InFlightCost().MicroUSD; got != 2*3150 {
			t.Errorf("got %d counting towards the caps", got)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- h.Run(ctx) }()
		time.Sleep(time.Minute)
		if booked, rows := b.left(); len(booked) != 2 || rows > 0 || h.InFlightCost() != (state.Money{}) {
			t.Errorf("got booked %+v, %d reservations are left, %+v not yet booked counts", booked, rows, h.InFlightCost())
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
