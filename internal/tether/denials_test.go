package tether_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/egress"
	"github.com/errand-bot/errand/internal/gateway"
	"github.com/errand-bot/errand/internal/tether"
	"github.com/errand-bot/errand/state"
)

// TestDenialsAreLogged: denied requests of a VM are logged, at a limited rate.
func TestDenialsAreLogged(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var log bytes.Buffer
	w := newEnd(t, someTask(), func(c *configs) {
		c.Log = zerolog.New(zerolog.SyncWriter(lockedWriter{&mu, &log})).Level(zerolog.InfoLevel)
	})
	token := w.handler.VMToken(vm)
	for _, try := range []struct {
		method, path, token string
		told                bool
	}{
		{http.MethodGet, fetchPath, token, false},
		{http.MethodPost, "/git/acme/shop.git/git-receive-pack", token, true},
		{http.MethodPost, "/git/acme/other.git/git-upload-pack", token, true},
		{http.MethodPost, "/git/acme/%2e%2e/other.git/git-upload-pack", token, true},
		{http.MethodPost, modelPath, token, true},
		{http.MethodGet, fetchPath, "another", true},
	} {
		mu.Lock()
		log.Reset()
		mu.Unlock()
		ask(t, webtest.Client(), try.method, w.url+try.path, basic(try.token))
		mu.Lock()
		line := log.String()
		mu.Unlock()
		if told := strings.Contains(line, `"message":"request from a VM denied"`) && strings.Contains(line, `"status":4`); told != try.told {
			t.Errorf("%s %s: logged %t, want %t: %s", try.method, try.path, told, try.told, line)
		}
	}
	for range 100 {
		ask(t, webtest.Client(), http.MethodPost, w.url+"/git/acme/shop.git/"+strings.Repeat("x", 1000), basic(token))
	}
	mu.Lock()
	defer mu.Unlock()
	if n := strings.Count(log.String(), "request from a VM denied"); n == 0 || n > 60 || log.Len() > 60*500 {
		t.Errorf("100 denials were logged in %d lines of %d bytes", n, log.Len())
	}
}

type lockedWriter struct {
	mu *sync.Mutex
	to io.Writer
}

func (w lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(p)
}

// upstreams records the requests that were forwarded, and forwards nothing.
type upstreams struct{ seen []*http.Request }

func (u *upstreams) RoundTrip(r *http.Request) (*http.Response, error) {
	u.seen = append(u.seen, r)
	if r.Body != nil {
		_ = r.Body.Close()
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}")), Request: r, ProtoMajor: 1}, nil
}

// FuzzRequests: of all bytes that a VM can send, only model calls with errand's key and fetches of the task's repository with errand's
// token are forwarded, without the VM's own credentials.
func FuzzRequests(f *testing.F) {
	key, task := []byte("a secret of the deployment"), someTask()
	var up upstreams
	cfg := configs{Config: tether.Config{
		Tasks: tasks{task: task}, Key: key, Log: zerolog.Nop(), EgressDone: func(*state.Task, egress.Request) {},
		Egress: egress.New(egress.Config{Resolver: nowhere{}}), EgressPolicy: func(*state.Task) egress.Policy { return egress.Policy{Allow: []string{"registry.test"}} },
	}}
	cfg.gateway.Providers = map[string]gateway.Provider{"anthropic": {BaseURL: "http://model.test/base", Key: modelKey, Header: "X-Api-Key", API: "anthropic"}}
	cfg.git.Repository = func(context.Context, *state.Task) (string, string, error) {
		return "http://git.test/acme/shop.git", readToken, nil
	}
	h := cfg.handler(&up)
	token := h.RunToken(run)
	for _, line := range []string{
		"POST /llm/anthropic/v1/messages HTTP/1.1", "GET " + fetchPath + " HTTP/1.1", "POST /git/acme/shop.git/git-upload-pack HTTP/1.1",
		"POST /git/acme/shop.git/git-receive-pack HTTP/1.1", "CONNECT registry.test:443 HTTP/1.1", "GET http://git.test/acme/other.git/info/refs HTTP/1.1",
		"PUT //git/acme/shop.git//git-upload-pack HTTP/1.1", "POST /callback/ask HTTP/1.1", "OPTIONS * HTTP/1.1", "GET /llm/anthropic/../git HTTP/1.0",
	} {
		f.Add([]byte(line + "\r\nHost: git.test\r\nAuthorization: Bearer TOKEN\r\nX-Forwarded-Host: x\r\nContent-Length: 2\r\n\r\n{}"))
	}
	handler := h.For(tether.Peer{VM: vm, Task: task.Key})
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(bytes.ReplaceAll(raw, []byte("TOKEN"), []byte(token)))))
		if err != nil {
			return
		}
		up.seen = nil
		r = r.WithContext(t.Context())
		handler.ServeHTTP(httptest.NewRecorder(), r)
		for _, got := range up.seen {
			checkForwarded(t, got, token)
		}
	})
}

// checkForwarded checks a request that errand forwarded.
func checkForwarded(t *testing.T, got *http.Request, token string) {
	t.Helper()
	_, password, _ := got.BasicAuth()
	var ok bool
	switch got.URL.Host {
	case "model.test":
		ok = (got.URL.Path == "/base/v1/messages" || got.URL.Path == "/base/v1/messages/count_tokens") && got.Method == http.MethodPost && got.Header.Get("X-Api-Key") == modelKey && password == ""
	case "git.test":
		ok = password == readToken && got.Header.Get("X-Api-Key") == "" &&
			(got.Method == http.MethodPost && got.URL.RequestURI() == "/acme/shop.git/git-upload-pack" ||
				got.Method == http.MethodGet && got.URL.RequestURI() == "/acme/shop.git/info/refs?service=git-upload-pack")
	}
	shown := got.URL.String()
	for _, name := range []string{"Authorization", "X-Api-Key", "X-Goog-Api-Key", "Cookie", "Proxy-Authorization"} {
		shown += got.Header.Get(name)
	}
	if !ok || got.Host != got.URL.Host || strings.Contains(shown, token) {
		t.Errorf("forwarded: %s %s, host %s: %s", got.Method, got.URL, got.Host, shown)
	}
}

// nowhere resolves no name.
type nowhere struct{}

func (nowhere) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return nil, errors.New("no such host")
}
