package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// names is a resolver with fixed entries.
type names map[string][]string

func (n names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	var out []netip.Addr
	for _, a := range n[host] {
		out = append(out, netip.MustParseAddr(a))
	}
	if len(out) == 0 {
		return nil, errors.New("no such host")
	}
	return out, nil
}

// world is a proxy between a client and two servers that act as internet hosts.
type world struct {
	proxy  *httptest.Server
	client *http.Client
	dialed chan string
	told   chan Request
	heard  atomic.Int64 // bytes sent to servers
}

// soon is the timeout of tests for something that happens immediately unless it is broken.
const soon = time.Minute

// recorded returns the record of one finished request.
func (w *world) recorded(t *testing.T) Request {
	t.Helper()
	select {
	case r := <-w.told:
		return r
	case <-time.After(soon):
		t.Fatal("the request has not ended or was not recorded")
		return Request{}
	}
}

// tunnel opens a tunnel to registry.test. The connection is closed automatically.
func (w *world) tunnel(t *testing.T) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", w.proxy.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // it may be closed already
	if err := conn.SetDeadline(time.Now().Add(soon)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "CONNECT registry.test:443 HTTP/1.1\r\nHost: registry.test:443\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, len("HTTP/1.1 200 Connection established\r\n\r\n"))
	if _, err := io.ReadFull(conn, answer); err != nil || !strings.Contains(string(answer), " 200 ") {
		t.Fatalf("%q, %v", answer, err)
	}
	return conn
}

// countingConn counts the bytes written to a server.
type countingConn struct {
	net.Conn
	n *atomic.Int64
}

func (h countingConn) Write(b []byte) (int, error) {
	h.n.Add(int64(len(b)))
	return h.Conn.Write(b)
}

// CloseWrite closes the write side, as on a TCP connection.
func (h countingConn) CloseWrite() error { return h.Conn.(*net.TCPConn).CloseWrite() } //nolint:forcetypeassert // it is one

func newWorld(t *testing.T, allow ...string) *world {
	t.Helper()
	say := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "for "+r.Host+" "+r.Header.Get("Proxy-Authorization"))
	})
	secure, plain := httptest.NewTLSServer(say), httptest.NewServer(say)
	t.Cleanup(secure.Close)
	t.Cleanup(plain.Close)
	w := &world{dialed: make(chan string, 100), told: make(chan Request, 100)}
	p := New(Config{
		Resolver: names{
			"registry.test": {"93.184.215.14"}, "other.test": {"93.184.215.15"}, "inside.test": {"10.0.0.1"}, "both.test": {"93.184.215.14", "169.254.169.254"},
			"mapped.test": {"::ffff:127.0.0.1"}, "host.test": {"93.184.215.40"}, "host6.test": {"2606:2800:21f::40"}, "wire.test": {"168.63.129.16"}, "a.below.test": {"2606:2800:21f::1"}, "down.test": {"93.184.215.16"},
		},
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			w.dialed <- address
			to := plain.Listener.Addr().String()
			switch {
			case strings.HasPrefix(address, "93.184.215.16:"):
				return nil, errors.New("refused")
			case strings.HasSuffix(address, ":443"):
				to = secure.Listener.Addr().String()
			}
			conn, err := (&net.Dialer{}).DialContext(ctx, network, to)
			if err != nil {
				return nil, err
			}
			return countingConn{conn, &w.heard}, nil
		},
		OwnAddresses: func() ([]net.Addr, error) {
			return []net.Addr{&net.IPNet{IP: net.ParseIP("93.184.215.40"), Mask: net.CIDRMask(24, 32)}, &net.IPNet{IP: net.ParseIP("2606:2800:21f::40"), Mask: net.CIDRMask(64, 128)}}, nil
		},
	})
	w.proxy = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		p.Serve(rw, r, "vm-1", Policy{Allow: allow}, func(r Request) { w.told <- r })
	}))
	t.Cleanup(w.proxy.Close)
	roots := secure.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	at, err := url.Parse(w.proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	at.User = url.UserPassword("run", "token")
	w.client = &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(at), TLSClientConfig: &tls.Config{RootCAs: roots, InsecureSkipVerify: true}}} //nolint:gosec // the server's name is made up
	t.Cleanup(w.client.CloseIdleConnections)
	return w
}

// get requests an address through the proxy.
func (w *world) get(t *testing.T, address string) (status int, body string, err error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := w.client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	return res.StatusCode, string(data), err
}

func TestAllowedHostsAreReached(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"http://registry.test/x":      "for registry.test ",
		"http://REGISTRY.test./x":     "for registry.test ",
		"https://registry.test/x":     "for registry.test ",
		"http://registry.test:8080/x": "for registry.test:8080 ",
		"https://a.below.test/":       "for a.below.test ",
	} {
		t.Run(address, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "registry.test", "registry.test:8080", "*.below.test")
			status, body, err := w.get(t, address)
			if err != nil || status != http.StatusOK || body != want {
				t.Errorf("%d %q, %v", status, body, err)
			}
			w.client.CloseIdleConnections()
			if r := w.recorded(t); !r.Allowed || r.Reason != "" || r.Host == "" || r.Received == 0 {
				t.Errorf("recorded as %+v", r)
			}
			select {
			case to := <-w.dialed:
				if !strings.HasPrefix(to, "93.184.215.14:") && !strings.HasPrefix(to, "[2606:2800:21f::1]:") {
					t.Errorf("connected to %s, not to the address that was judged", to)
				}
			default:
				t.Error("connected to nothing")
			}
		})
	}
}

func TestOthersAreRefused(t *testing.T) {
	t.Parallel()
	for address, why := range map[string]string{
		"http://other.test/":           "other.test:80 is not on the list",
		"http://registry.test:22/":     "registry.test:22 is not on the list",
		"http://below.test/":           "is not on the list",
		"http://169.254.169.254/":      "is an address",
		"http://[::1]/":                "is an address",
		"http://127.1/":                "is an address",
		"http://2130706433/":           "is an address",
		"http://0x7f000001/":           "is an address",
		"http://inside.test/":          "inside.test has the address 10.0.0.1, which is not public",
		"http://both.test/":            "169.254.169.254, which is not public",
		"http://mapped.test/":          "127.0.0.1, which is not public",
		"http://wire.test/":            "168.63.129.16, which is not public",
		"http://host.test/":            "93.184.215.40, which belongs to errand's own host",
		"http://host6.test/":           "2606:2800:21f::40, which belongs to errand's own host",
		"http://x.registry.test/":      "is not on the list",
		"http://169.254.169.254.:80/":  "is an address",
		"http://2852039166/":           "is an address", // 169.254.169.254 as one number, in hexadecimal, in octal, and shortened
		"http://0xa9fea9fe/":           "is an address",
		"http://0251.0376.0251.0376/":  "is an address",
		"http://169.254.43518/":        "is an address",
		"http://0/":                    "is an address",
		"http://[fd00:ec2::254]/":      "is an address", // metadata address of some clouds
		"http://[::ffff:a9fe:a9fe]/":   "is an address",
		"http://[64:ff9b::a9fe:a9fe]/": "is an address",
		"http://[fe80::1%25eth0]/":     "is an address",
		"http://localhost/":            "is not a host name",
		"http://registry.test@x.test/": "x.test:80 is not on the list",
		"http://registry.test:8443/":   "registry.test:8443 is not on the list",
		"http://registry.test:65536/":  "registry.test:65536 is not on the list",
		"http://registry.test.evil.t/": "is not on the list",
	} {
		t.Run(address, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "registry.test", "inside.test", "both.test", "mapped.test", "*.below.test", "wire.test", "host.test", "host6.test")
			status, body, err := w.get(t, address)
			if err != nil || status != http.StatusForbidden || !strings.Contains(body, why) {
				t.Errorf("%d %q, %v", status, body, err)
			}
			if r := w.recorded(t); r.Allowed || r.Reason == "" {
				t.Errorf("recorded as %+v", r)
			}
			if len(w.dialed) > 0 {
				t.Errorf("connected to %s", <-w.dialed)
			}
		})
	}
	w := newWorld(t, "down.test")
	if status, body, err := w.get(t, "http://down.test/"); status != http.StatusBadGateway || !strings.Contains(body, "down.test") {
		t.Errorf("a host that is down: %d %q, %v", status, body, err)
	}
	if _, _, err := w.get(t, "https://other.test/"); err == nil || !strings.Contains(err.Error(), "Forbidden") {
		t.Errorf("a tunnel to a host that is not listed: %v", err)
	}
}

// TestTunnelIsLimitedToItsHost: a tunnel to one host cannot be used for TLS with another host at the same address. That host
// receives no byte.
func TestTunnelIsLimitedToItsHost(t *testing.T) {
	t.Parallel()
	hello := func(server string) func(net.Conn) error {
		return func(c net.Conn) error {
			return tls.Client(c, &tls.Config{ServerName: server, InsecureSkipVerify: true}).Handshake() //nolint:gosec // it shall not get so far
		}
	}
	for name, test := range map[string]struct {
		begin  func(net.Conn) error
		reason string
	}{
		"another server": {hello("other.test"), `the tunnel to registry.test is for the server "other.test"`},
		"a server below": {hello("x.registry.test"), `the tunnel to registry.test is for the server "x.registry.test"`},
		"a server above": {hello("test"), `the tunnel to registry.test is for the server "test"`},
		"no server":      {hello(""), `the tunnel to registry.test is for the server ""`},
		"no TLS": {func(c net.Conn) error {
			if _, err := io.WriteString(c, "SSH-2.0-exfiltrate\r\n"); err != nil {
				return err
			}
			_, err := c.Read(make([]byte, 1))
			return err
		}, "the tunnel to registry.test does not begin with a TLS hello"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "registry.test")
			conn := w.tunnel(t)
			err := test.begin(conn)
			_ = conn.Close() // a tunnel let through by mistake would stay open until its idle timeout
			switch {
			case err == nil:
				t.Error("the handshake succeeded")
			case errors.Is(err, os.ErrDeadlineExceeded):
				t.Error("the tunnel was not closed")
			}
			if r := w.recorded(t); r.Allowed || !strings.Contains(r.Reason, test.reason) || r.Sent != 0 {
				t.Errorf("recorded as %+v, want the reason %q", r, test.reason)
			}
			if n := w.heard.Load(); n > 0 {
				t.Errorf("the host heard %d bytes", n)
			}
		})
	}
}

func TestPublic(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		public    bool
		addresses []string
	}{
		"the internet":                  {true, []string{"1.1.1.1", "93.184.215.14", "2606:4700::1111", "::ffff:8.8.8.8", "168.63.129.15", "168.63.129.17", "161.25.255.255", "166.12.0.1"}},
		"unspecified and loopback":      {false, []string{"0.0.0.0", "0.1.2.3", "127.0.0.1", "127.8.8.8", "::", "::1"}},
		"private":                       {false, []string{"10.1.2.3", "172.16.0.1", "192.168.1.1", "fd00::1", "fec0::1"}},
		"carrier's networks":            {false, []string{"100.64.0.1", "100.127.255.255"}},
		"link-local, metadata services": {false, []string{"169.254.169.254", "169.254.170.2", "169.254.0.23", "fe80::1", "fe80::1%eth0", "fe80::a9fe:a9fe"}},
		"AWS by IPv6":                   {false, []string{"fd00:ec2::254", "fd00:ec2::23"}},
		"Google by IPv6":                {false, []string{"fd20:ce::254"}},
		"Azure":                         {false, []string{"168.63.129.16", "::ffff:168.63.129.16"}},
		"Alibaba":                       {false, []string{"100.100.100.200", "100.100.2.136"}},
		"Oracle, protocol assignments":  {false, []string{"192.0.0.192", "192.0.0.1", "192.0.0.170"}},
		"IBM":                           {false, []string{"161.26.0.10", "161.26.255.255", "166.8.0.1", "166.11.255.255"}},
		"benchmarks, documentation":     {false, []string{"198.18.0.1", "198.19.255.255", "192.0.2.1", "198.51.100.1", "203.0.113.1", "2001:db8::1", "3fff::1"}},
		"multicast, reserved":           {false, []string{"224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255", "ff02::1", "ff0e::1"}},
		"IPv4 in IPv6":                  {false, []string{"::ffff:10.0.0.1", "::ffff:169.254.169.254", "::a9fe:a9fe", "::ffff:0:a9fe:a9fe"}},
		"NAT64":                         {false, []string{"64:ff9b::a00:1", "64:ff9b::a9fe:a9fe", "64:ff9b::808:808", "64:ff9b:1::a9fe:a9fe"}},
		"6to4 and its relays":           {false, []string{"2002:7f00:1::", "2002:a9fe:a9fe::1", "2002:808:808::1", "192.88.99.1"}},
		"Teredo, ORCHID":                {false, []string{"2001:0:a9fe:a9fe::1", "2001::1", "2001:10::1", "2001:20::1"}},
		"not given out":                 {false, []string{"100::1", "5f00::1", "4000::1", "8000::1"}},
	} {
		for _, a := range test.addresses {
			if isPublic(netip.MustParseAddr(a)) != test.public {
				t.Errorf("%s: %s counts as public: %v", name, a, !test.public)
			}
		}
	}
	if isPublic(netip.Addr{}) {
		t.Error("no address counts as public")
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, entry := range Hosts(Registries()) {
		if err := Check(entry); err != nil {
			t.Error(err)
		}
	}
	for _, entry := range []string{"*.example.org", "example.org:8443", "containers", "go"} {
		if err := Check(entry); err != nil {
			t.Error(err)
		}
	}
	for _, entry := range []string{"", "*", "localhost", "*.*.org", "EXAMPLE.org", "10.0.0.1", "https://example.org", "example.org:0", "example.org:", "a b.org", "*example.org", "container", "Go", "go:443", "*.go", "-"} {
		if Check(entry) == nil {
			t.Errorf("%q is taken", entry)
		}
	}
}

func FuzzJudge(f *testing.F) {
	for _, s := range []string{"registry.test", "REGISTRY.test", "127.0.0.1", "0x7f.1", "[::1]", "a.registry.test", "registry.test.", "xn--bcher-kva.test", "*.registry.test"} {
		f.Add(s, "443")
	}
	p := Policy{Allow: []string{"registry.test", "*.below.test"}}
	f.Fuzz(func(t *testing.T, host, port string) {
		if p.check(host, port) != nil {
			return
		}
		if host != "registry.test" && !strings.HasSuffix(host, ".below.test") || port != "443" && port != "80" {
			t.Errorf("%q:%q is let through", host, port)
		}
		if _, err := netip.ParseAddr(host); err == nil {
			t.Errorf("%q is an address", host)
		}
	})
}
