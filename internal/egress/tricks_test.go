package egress

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
)

// TestTunnelsToOtherPorts: tunnels reach only the ports in the list, in any spelling.
func TestTunnelsToOtherPorts(t *testing.T) {
	t.Parallel()
	for target, why := range map[string]string{
		"registry.test:22":           "registry.test:22 is not on the list",
		"registry.test:25":           "registry.test:25 is not on the list",
		"registry.test:8443":         "registry.test:8443 is not on the list",
		"registry.test:0443":         "is not a host",
		"registry.test:https":        "",
		"registry.test:":             "",
		"registry.test:443:443":      "",
		":443":                       "is not a host",
		"*.below.test:443":           "is not a host name",
		"below.test:443":             "is not on the list",
		"169.254.169.254:80":         "is an address",
		"[fd00:ec2::254]:80":         "is an address",
		"[::ffff:a9fe:a9fe]:443":     "is an address",
		"[64:ff9b::a9fe:a9fe]:443":   "is an address",
		"2852039166:443":             "is an address",
		"0251.0376.0251.0376.:443":   "is an address",
		"inside.test:443":            "which is not public",
		"registry.test\x00.evil:443": "",
	} {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "registry.test", "inside.test", "*.below.test")
			conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", w.proxy.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := io.WriteString(conn, "CONNECT "+target+" HTTP/1.1\r\nHost: registry.test:443\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			res, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: http.MethodConnect})
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if res.StatusCode < 400 || !strings.Contains(string(body), why) {
				t.Errorf("%d %q, want a refusal with %q", res.StatusCode, body, why)
			}
			if len(w.dialed) > 0 {
				t.Errorf("connected to %s", <-w.dialed)
			}
		})
	}
}

// rebinds resolves a name to a public address the first time and to an internal one afterwards.
type rebinds struct{ asked atomic.Int32 }

func (r *rebinds) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	if r.asked.Add(1) == 1 {
		return []netip.Addr{netip.MustParseAddr("93.184.215.14")}, nil
	}
	return []netip.Addr{netip.MustParseAddr("169.254.169.254")}, nil
}

// TestRebindingNameIsRefused: between the check of an address and the connection the name is not resolved again, and
// the next request checks the name's new address.
func TestRebindingNameIsRefused(t *testing.T) {
	t.Parallel()
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "well") }))
	t.Cleanup(far.Close)
	var names rebinds
	dialed := make(chan string, 10)
	p := New(Config{Resolver: &names, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		dialed <- address
		return (&net.Dialer{}).DialContext(ctx, network, far.Listener.Addr().String())
	}})
	get := func() int {
		w := httptest.NewRecorder()
		p.Serve(w, httptest.NewRequest(http.MethodGet, "http://registry.test/", nil), "vm-1", Policy{Allow: []string{"registry.test"}}, func(Request) {})
		return w.Code
	}
	if code := get(); code != http.StatusOK || names.asked.Load() != 1 {
		t.Errorf("%d after %d questions", code, names.asked.Load())
	}
	if to := <-dialed; to != "93.184.215.14:80" {
		t.Errorf("connected to %s", to)
	}
	if code := get(); code != http.StatusForbidden || len(dialed) > 0 {
		t.Errorf("the second time: %d, %d connections", code, len(dialed))
	}
}

// TestRedirectIsCheckedAgain: the proxy follows no redirects; if the client does, that is a separate request.
func TestRedirectIsCheckedAgain(t *testing.T) {
	t.Parallel()
	for to, why := range map[string]string{
		"http://169.254.169.254/hetzner/v1/userdata": "is an address",
		"http://other.test/":                         "is not on the list",
	} {
		t.Run(to, func(t *testing.T) {
			t.Parallel()
			far := httptest.NewServer(http.RedirectHandler(to, http.StatusFound))
			t.Cleanup(far.Close)
			told := make(chan Request, 10)
			p := New(Config{Resolver: names{"registry.test": {"93.184.215.14"}, "other.test": {"93.184.215.15"}}, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
				if !strings.HasPrefix(address, "93.184.215.14:") {
					return nil, errors.New("this must not be reached")
				}
				return (&net.Dialer{}).DialContext(ctx, network, far.Listener.Addr().String())
			}})
			proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				p.Serve(w, r, "vm-1", Policy{Allow: []string{"registry.test"}}, func(r Request) { told <- r })
			}))
			t.Cleanup(proxy.Close)
			at, err := url.Parse(proxy.URL)
			if err != nil {
				t.Fatal(err)
			}
			client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(at)}}
			t.Cleanup(client.CloseIdleConnections)
			res, err := client.Get("http://registry.test/")
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if res.StatusCode != http.StatusForbidden || !strings.Contains(string(body), why) {
				t.Errorf("%d %q", res.StatusCode, body)
			}
			if first, second := <-told, <-told; !first.Allowed || second.Allowed {
				t.Errorf("recorded as %+v and %+v", first, second)
			}
		})
	}
}
