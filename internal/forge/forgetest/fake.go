// Package forgetest has the helpers that the tests of package forge and of the packages below it share.
//
// [World] is a simulated GitHub with one repository and its people. [Fake] is an HTTP server whose answers the test
// writes. Start with [NewWorld].
package forgetest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/rsatest"
)

// Key returns the private key of all Apps of the tests.
func Key() []byte { return []byte(rsatest.PEM()) }

// Repo returns a repository for requests to a Fake.
func Repo() forge.Repo { return forge.Repo{Installation: 7, Owner: "octo", Name: "app", ID: 70} }

// Fake is a server in place of GitHub. It issues tokens and passes all other requests to a function.
type Fake struct {
	*httptest.Server
	mu    sync.Mutex
	calls []string // METHOD path, tokens left out
}

// Requests returns the method and the path of each request, except those for tokens.
func (f *Fake) Requests() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.calls...)
}

// NewFake starts a Fake, which the test stops at its end.
func NewFake(t *testing.T, handle http.HandlerFunc) *Fake {
	t.Helper()
	f := &Fake{}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/access_tokens") {
			w.WriteHeader(http.StatusCreated)
			fmt.Fprintf(w, `{"token":"ghs_test","expires_at":%q}`, time.Now().Add(time.Hour).Format(time.RFC3339))
			return
		}
		f.mu.Lock()
		f.calls = append(f.calls, r.Method+" "+strings.TrimPrefix(r.URL.Path, "/api/v3"))
		f.mu.Unlock()
		handle(w, r)
	}))
	t.Cleanup(f.Close)
	return f
}

// New makes a Forge for the GitHub at base, with changes to the configuration.
func New(t *testing.T, base string, change ...func(*forge.Config)) *forge.Forge {
	t.Helper()
	cfg := forge.Config{
		AppID: 1, PrivateKey: Key(), WebURL: base, V3APIURL: base + "/api/v3/", V4APIURL: base + "/api/graphql",
		Transport: &http.Transport{DisableKeepAlives: true}, // else it repeats some reads by itself
		Backoff:   time.Millisecond, Writes: forge.RateLimit{Burst: 1000}, Data: forge.RateLimit{Burst: 1000},
	}
	for _, c := range change {
		c(&cfg)
	}
	f, err := forge.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Answer writes v as JSON.
func Answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

// RoundTripper is a function as an http.RoundTripper.
type RoundTripper func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f RoundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// Poll waits until ok, for at most a minute.
func Poll(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatalf("no %s in time", what)
		case <-tick.C:
		}
	}
}
