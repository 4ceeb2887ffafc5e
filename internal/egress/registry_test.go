package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var dialer net.Dialer

// The registries of tests are both on packages.test.
const (
	npmToken = "npm-token-0123456789"
	goToken  = "go-token-0123456789"
)

// packages is a host with two registries behind a proxy, and the client of a VM.
type packages struct {
	proxy     *httptest.Server
	client    *http.Client
	authority *Authority
	policy    Policy
	recorded  chan struct{} // gets a value for each record
	ended     chan struct{} // gets a value when a tunnel has ended

	mu      sync.Mutex
	seen    []*http.Request
	records []Request
}

// newPackages returns the host. Its registries answer with the path and credential that they were asked with.
func newPackages(t *testing.T, answer http.HandlerFunc) *packages {
	t.Helper()
	p := &packages{recorded: make(chan struct{}, 10_000), ended: make(chan struct{}, 100)}
	upstream := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.seen = append(p.seen, r.Clone(r.Context()))
		p.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(upstream.Close)
	transport := upstream.Client().Transport.(*http.Transport).Clone()
	transport.TLSClientConfig.ServerName = "example.com" // httptest's certificate
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, network, upstream.Listener.Addr().String())
	}
	authority, err := NewAuthority([]byte(strings.Repeat("s", 32)), []string{"packages.test"}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	p.authority = authority
	p.policy = Policy{Registries: []Registry{
		{Name: "npm", URL: mustParse(t, "https://packages.test/repository/npm"), Header: "Authorization", Value: "Bearer " + npmToken},
		{Name: "go", URL: mustParse(t, "https://packages.test/repository/npm/go"), Header: "X-Token", Value: goToken},
	}}
	proxy := New(Config{Authority: authority, Upstream: transport, Resolver: names{}, tunnelIdle: time.Second})
	p.proxy = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		proxy.Serve(w, r, "vm-1", p.policy, func(r Request) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.records = append(p.records, r)
			p.recorded <- struct{}{}
		})
		p.ended <- struct{}{}
	}))
	t.Cleanup(p.proxy.Close)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority.PEM())
	at := mustParse(t, p.proxy.URL)
	at.User = url.UserPassword("run", "token")
	p.client = &http.Client{
		Transport:     &http.Transport{Proxy: http.ProxyURL(at), TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       soon,
	}
	t.Cleanup(p.client.CloseIdleConnections)
	return p
}

func mustParse(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// echo answers with the credential of a request.
func echo(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, &http.Cookie{Name: "session", Value: "upstream"})
	by := map[string]string{"Bearer " + npmToken: "npm", goToken: "go", "": "nobody"}
	_, _ = io.WriteString(w, r.Method+" "+r.URL.EscapedPath()+" by "+by[r.Header.Get("Authorization")+r.Header.Get("X-Token")])
}

// do sends a request of a VM, and returns the answer and its body.
func (p *packages) do(t *testing.T, method, target string, change func(*http.Request)) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, target, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(r)
	}
	answer, err := p.client.Do(r)
	if err != nil {
		t.Fatalf("%s %s: %v", method, target, err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	p.awaitRecords(t, 1)
	return answer, string(body)
}

// last returns the newest record, and the requests that the registries saw.
func (p *packages) last(t *testing.T) (Request, []*http.Request) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.records) == 0 {
		t.Fatal("nothing was recorded")
	}
	return p.records[len(p.records)-1], slices.Clone(p.seen)
}

// TestRegistries: errand adds the credential of the registry to reads below its address, and refuses everything else on that host.
func TestRegistries(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		method, path string // GET unless set
		change       func(*http.Request)
		want         string // the body, or a part of the refusal
		refused      bool
	}{
		"a package":                        {path: "/repository/npm/left-pad", want: "GET /repository/npm/left-pad by npm"},
		"the registry itself":              {path: "/repository/npm", want: "GET /repository/npm by npm"},
		"a scope, as npm writes it":        {path: "/repository/npm/@acme%2fshop", want: "GET /repository/npm/@acme%2fshop by npm"},
		"the registry with a longer path":  {path: "/repository/npm/go/acme.dev/x/@v/list", want: "GET /repository/npm/go/acme.dev/x/@v/list by go"},
		"a name that begins with two dots": {path: "/repository/npm/..rc", want: "GET /repository/npm/..rc by npm"},
		"the VM's own credentials": {path: "/repository/npm/x", want: "GET /repository/npm/x by npm", change: func(r *http.Request) {
			r.Header.Set("Authorization", "Bearer stolen")
			r.Header.Set("X-Token", "stolen")
			r.Header.Set("Cookie", "session=stolen")
		}},
		"a change of the protocol": {path: "/repository/npm/x", want: "GET /repository/npm/x by npm", change: func(r *http.Request) {
			r.Header.Set("Connection", "Upgrade")
			r.Header.Set("Upgrade", "websocket")
		}},
		"another method by a header": {path: "/repository/npm/x", want: "GET /repository/npm/x by npm", change: func(r *http.Request) {
			r.Header.Set("X-Http-Method-Override", "DELETE")
		}},

		"a publication":                   {method: "PUT", path: "/repository/npm/x", refused: true, want: "only answers GET and HEAD"},
		"an audit":                        {method: "POST", path: "/repository/npm/-/npm/v1/security/audits", refused: true, want: "only answers GET and HEAD"},
		"a removal":                       {method: "DELETE", path: "/repository/npm/x", refused: true, want: "only answers GET and HEAD"},
		"another path":                    {path: "/api/users", refused: true, want: "outside of the registries"},
		"a path with the same beginning":  {path: "/repository/npm-private/x", refused: true, want: "outside of the registries"},
		"a step up":                       {path: "/repository/npm/../admin", refused: true, want: "must not contain"},
		"an encoded step up":              {path: "/repository/npm/%2e%2e/admin", refused: true, want: "must not contain"},
		"an encoded step with a slash":    {path: "/repository/npm/..%2fadmin", refused: true, want: "must not contain"},
		"a step with a parameter":         {path: "/repository/npm/..;x/admin", refused: true, want: "must not contain"},
		"a step with another slash":       {path: `/repository/npm/..%5cadmin`, refused: true, want: "must not contain"},
		"a host in the request's headers": {path: "/repository/npm/x", refused: true, want: "is for the server", change: func(r *http.Request) { r.Host = "other.test" }},
		"a step up, encoded twice":        {path: "/repository/npm/%252e%252e/admin", refused: true, want: "must not contain"},
		"a step up with a space":          {path: "/repository/npm/..%20/admin", refused: true, want: "must not contain"},
		"a step up with a query":          {path: "/repository/npm/..%3fx/admin", refused: true, want: "must not contain"},
		"a step up with a NUL":            {path: "/repository/npm/..%00/admin", refused: true, want: "must not contain"},
		"a step up in another encoding":   {path: "/repository/npm/%c0%ae%c0%ae/admin", refused: true, want: "must not contain"},
		"an empty part":                   {path: "/repository/npm//x", refused: true, want: "must not contain"},
		"an encoded slash in the address": {path: "/repository%2fnpm/x", refused: true, want: "outside of the registries"},
		"a body": {path: "/repository/npm/x", refused: true, want: "without a body", change: func(r *http.Request) {
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader("x")), 1
		}},
		"a body of unknown length": {path: "/repository/npm/x", refused: true, want: "without a body", change: func(r *http.Request) {
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader("x")), -1
		}},
	}
	p := newPackages(t, echo)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p.mu.Lock()
			before := len(p.seen)
			p.mu.Unlock()
			if test.method == "" {
				test.method = http.MethodGet
			}
			answer, body := p.do(t, test.method, "https://packages.test"+test.path, test.change)
			record, seen := p.last(t)
			if record.Method != test.method || record.Host != "packages.test" || record.Port != "443" || record.Path == "" || record.Allowed == test.refused {
				t.Errorf("recorded %+v", record)
			}
			if test.refused {
				if answer.StatusCode != http.StatusForbidden || !strings.Contains(body, test.want) || len(seen) != before || record.Reason == "" {
					t.Errorf("got %d %q, %d requests reached the registry", answer.StatusCode, body, len(seen)-before)
				}
				return
			}
			if answer.StatusCode != http.StatusOK || body != test.want || record.Received != int64(len(body)) {
				t.Errorf("got %d %q, want %q; recorded %+v", answer.StatusCode, body, test.want, record)
			}
			got := seen[len(seen)-1]
			if got.Header.Get("Cookie") != "" || got.Header.Get("Upgrade") != "" || got.Header.Get("X-Http-Method-Override") != "" || got.Host != "packages.test" {
				t.Errorf("the registry got %v for %s", got.Header, got.Host)
			}
			if answer.Header.Get("Set-Cookie") != "" {
				t.Error("the VM got a session of the registry")
			}
		})
	}
}

// TestRegistryFails: the VM and the record say what is wrong with a registry.
func TestRegistryFails(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answer       http.HandlerFunc
		status       int
		body, reason string
	}{
		"a refused credential": {
			answer: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("WWW-Authenticate", "Basic")
				http.Error(w, "no", http.StatusUnauthorized)
			},
			status: 401, body: "no\n", reason: "the registry npm refuses the credential that the operator configured (401)",
		},
		"a broken connection": {
			answer: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
			status: 502, body: "errand: the registry npm cannot be reached\n", reason: "the registry npm cannot be reached: ",
		},
		"a redirect to another host": {
			answer: func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "https://files.test/x?signature=1", http.StatusFound)
			},
			status: 302, body: `<a href="https://files.test/x?signature=1">Found</a>.` + "\n\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPackages(t, test.answer)
			answer, body := p.do(t, http.MethodGet, "https://packages.test/repository/npm/x", nil)
			record, _ := p.last(t)
			if answer.StatusCode != test.status || body != test.body || !strings.HasPrefix(record.Reason, test.reason) || (record.Reason == "") != (test.reason == "") || answer.Header.Get("WWW-Authenticate") != "" {
				t.Errorf("got %d %q, recorded %q", answer.StatusCode, body, record.Reason)
			}
		})
	}
}

// TestRegistryNeedsTLS: nothing but TLS for the requested host is answered in a tunnel to a registry, and plain requests are refused.
func TestRegistryNeedsTLS(t *testing.T) {
	t.Parallel()
	p := newPackages(t, echo)
	if answer, body := p.do(t, http.MethodGet, "http://packages.test:443/repository/npm/x", nil); answer.StatusCode != http.StatusForbidden || !strings.Contains(body, "use https") {
		t.Errorf("a plain request: %d %q", answer.StatusCode, body)
	}
	for name, first := range map[string]func(net.Conn) error{
		"plain HTTP": func(c net.Conn) error {
			_, err := io.WriteString(c, "GET /repository/npm/x HTTP/1.1\r\nHost: packages.test\r\n\r\n")
			return err
		},
		"another host's name": func(c net.Conn) error {
			return tls.Client(c, &tls.Config{ServerName: "other.test", InsecureSkipVerify: true}).HandshakeContext(t.Context()) //nolint:gosec // it must fail before
		},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := dialer.DialContext(t.Context(), "tcp", p.proxy.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(soon))
			_, _ = io.WriteString(conn, "CONNECT packages.test:443 HTTP/1.1\r\nHost: packages.test:443\r\n\r\n")
			if answer, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || answer.StatusCode != http.StatusOK {
				t.Fatalf("the tunnel: %v %v", answer, err)
			}
			err = first(conn)
			rest, _ := io.ReadAll(conn)
			if name != "plain HTTP" && err == nil || strings.Contains(string(rest), npmToken) {
				t.Errorf("%v, %q", err, rest)
			}
			p.awaitRecords(t, 1)
			if record, seen := p.last(t); len(seen) != 0 || record.Reason == "" {
				t.Errorf("%d requests reached the registry; recorded %+v", len(seen), record)
			}
		})
	}
}

// TestRegistryOfAnotherRepository: a VM of a repository without the registry reaches it no more than any other host.
func TestRegistryOfAnotherRepository(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, err := w.client.Get("https://packages.test/repository/npm/x"); err == nil || !strings.Contains(err.Error(), "Forbidden") {
		t.Errorf("got %v", err)
	}
	if r := w.recorded(t); r.Allowed || !strings.Contains(r.Reason, "not on the list") {
		t.Errorf("recorded %+v", r)
	}
}
