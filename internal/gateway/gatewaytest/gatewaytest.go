// Package gatewaytest helps the tests of the gateway and of the tether: a server that stands for a model's provider, or
// for GitHub, and requests as programs on a VM send them.
//
// It imports neither of them, so that their internal tests can use it. Start with [NewUpstream] and [Send].
package gatewaytest

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// Upstream is a server that returns the body of each request, and remembers the requests.
type Upstream struct {
	URL string

	mu   sync.Mutex
	seen []*http.Request
}

// NewUpstream starts an [Upstream], which ends with the test.
func NewUpstream(t *testing.T) *Upstream {
	t.Helper()
	u := &Upstream{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u.mu.Lock()
		u.seen = append(u.seen, r.Clone(context.Background()))
		u.mu.Unlock()
		_, _ = io.Copy(w, r.Body)
		_, _ = io.WriteString(w, "from upstream")
	}))
	t.Cleanup(server.Close)
	u.URL = server.URL
	return u
}

// Count returns the number of received requests.
func (u *Upstream) Count() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.seen)
}

// Last returns the last received request, or nil.
func (u *Upstream) Last() *http.Request {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.seen) == 0 {
		return nil
	}
	return u.seen[len(u.seen)-1]
}

// Request is a request of a program on a VM.
type Request struct {
	Method, URL string
	Body        string
	Header      map[string]string
}

// Send sends a request and returns the status and the body of the answer.
func Send(t *testing.T, client *http.Client, q Request) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, q.Method, q.URL, strings.NewReader(q.Body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range q.Header {
		req.Header.Set(name, value)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(answer)
}

// Bearer returns the header of a bearer token.
func Bearer(token string) map[string]string {
	return map[string]string{"Authorization": "Bearer " + token}
}
