package simmodel_test

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/errand-bot/errand/internal/sim/simmodel"
)

func TestFaultsApplyTheConfiguredNumberOfTimes(t *testing.T) {
	t.Parallel()
	_, url := serve(t, simmodel.Config{Key: key, Script: fixed(simmodel.Turn{
		Text: "ok", Status: 429, Message: "slow down", RetryAfter: 7, Header: map[string]string{"X-Odd": "1"}, Times: 2,
	})})
	for _, prompt := range []string{"one", "two"} { // the fault is counted per conversation
		for range 2 {
			res, body := post(t, url, true, user(prompt))
			if res.StatusCode != 429 || res.Header.Get("Retry-After") != "7" || res.Header.Get("X-Odd") != "1" {
				t.Errorf("got status %d, headers %v", res.StatusCode, res.Header)
			}
			if !strings.Contains(body, "rate_limit_error") || !strings.Contains(body, "slow down") {
				t.Errorf("got body %s", body)
			}
		}
		if got := ask(t, url, user(prompt)).text(); got != "ok" {
			t.Errorf("after the fault: got %q", got)
		}
	}
}

func TestCutsAStream(t *testing.T) {
	t.Parallel()
	_, url := serve(t, simmodel.Config{Key: key, Script: fixed(simmodel.Turn{Text: "one two three four five six seven eight", Cut: 2})})
	_, body := post(t, url, true, user("x"))
	if n := strings.Count(body, "text_delta"); n != 2 {
		t.Errorf("got %d deltas before the cut, want 2", n)
	}
	if strings.Contains(body, "message_stop") {
		t.Error("the cut stream has an end")
	}
	if _, body = post(t, url, true, user("x")); !strings.Contains(body, "message_stop") {
		t.Error("the second stream has no end")
	}
}

func TestGate(t *testing.T) {
	t.Parallel()
	srv, url := serve(t, simmodel.Config{Key: key, Script: fixed(simmodel.Turn{Text: "in", Wait: "door"})})
	answered := make(chan string, 1)
	go func() {
		_, body := post(t, url, false, user("x"))
		answered <- body
	}()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := srv.Waiting(ctx, "door"); err != nil {
		t.Fatal(err)
	}
	if n := len(srv.Requests()); n != 0 {
		t.Errorf("got %d requests recorded as answered", n)
	}
	select {
	case body := <-answered:
		t.Errorf("answered before the gate opened: %s", body)
	default:
	}
	res, err := webtest.Client().Post(url+"/_sim/release?gate=door", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusNoContent {
		t.Errorf("release: got status %d", res.StatusCode)
	}
	if body := <-answered; !strings.Contains(body, `"in"`) {
		t.Errorf("got body %s", body)
	}
	if got := ask(t, url, user("y")).text(); got != "in" {
		t.Errorf("open gate: got %q", got)
	}
}

func TestGateIsBounded(t *testing.T) {
	t.Parallel()
	_, url := serve(t, simmodel.Config{Key: key, MaxHold: time.Millisecond, Script: fixed(simmodel.Turn{Text: "in", Wait: "door"})})
	if res, body := post(t, url, false, user("x")); res.StatusCode != 529 || !strings.Contains(body, "door") {
		t.Errorf("got status %d, body %s", res.StatusCode, body)
	}
}

func TestRecordsAreBounded(t *testing.T) {
	t.Parallel()
	srv, url := serve(t, simmodel.Config{Key: key, MaxRecords: 3, MaxRecordBytes: 2000, Script: fixed(simmodel.Turn{Text: "ok"})})
	for _, prompt := range []string{"a", "b", "c", "d"} {
		ask(t, url, user(prompt))
	}
	got := srv.Requests()
	if len(got) != 3 || !bytes.Contains(got[2].Body, []byte(`"d"`)) || got[2].Rule != "rule 1" || got[2].Status != 200 {
		t.Errorf("got records %+v", got)
	}
	ask(t, url, user(strings.Repeat("x", 1800)))
	if got = srv.Requests(); len(got) != 1 {
		t.Errorf("got %d records after a long one, want 1", len(got))
	}
	if got[0].Header.Get("Authorization") != "Bearer "+key {
		t.Error("the record lacks the request's headers")
	}
}

func TestWarmUpAndUnknownPaths(t *testing.T) {
	t.Parallel()
	_, url := serve(t, simmodel.Config{})
	for path, want := range map[string]int{"/": 200, "/v1/models": 404, "/_sim/nothing": 404} {
		req, err := http.NewRequest(http.MethodHead, url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := webtest.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("HEAD %s: got status %d, want %d", path, res.StatusCode, want)
		}
	}
}
