package httpserver

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
)

func TestClientBehindProxies(t *testing.T) {
	t.Parallel()
	trusted := proxies{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("127.0.0.1/32"), netip.MustParsePrefix("2001:db8:1::/48")}
	for name, c := range map[string]struct {
		peer    string
		headers []string
		want    string
	}{
		"a stranger":                              {"203.0.113.7:1", nil, "203.0.113.7"},
		"a stranger that forges":                  {"203.0.113.7:1", []string{"198.51.100.1"}, "203.0.113.7"},
		"a stranger that forges a proxy":          {"203.0.113.7:1", []string{"198.51.100.1, 10.0.0.1"}, "203.0.113.7"},
		"through a proxy":                         {"10.0.0.1:1", []string{"203.0.113.7"}, "203.0.113.7"},
		"through a proxy, forged before it":       {"10.0.0.1:1", []string{"198.51.100.1, 203.0.113.7"}, "203.0.113.7"},
		"forged in a header of its own":           {"10.0.0.1:1", []string{"198.51.100.1", "203.0.113.7"}, "203.0.113.7"},
		"through two proxies":                     {"127.0.0.1:1", []string{"198.51.100.1, 203.0.113.7, 10.0.0.9"}, "203.0.113.7"},
		"forged as a proxy's address":             {"10.0.0.1:1", []string{"127.0.0.1, 203.0.113.7"}, "203.0.113.7"},
		"an inner client of the proxy's network":  {"10.0.0.1:1", []string{"10.0.0.5"}, "10.0.0.5"},
		"nonsense to the left":                    {"10.0.0.1:1", []string{"nonsense, 203.0.113.7"}, "203.0.113.7"},
		"nonsense next to the proxy":              {"10.0.0.1:1", []string{"203.0.113.7, nonsense"}, "10.0.0.1"},
		"an empty entry next to the proxy":        {"10.0.0.1:1", []string{"203.0.113.7, "}, "10.0.0.1"},
		"a proxy that says nothing":               {"10.0.0.1:1", nil, "10.0.0.1"},
		"with a port":                             {"10.0.0.1:1", []string{"203.0.113.7:4711"}, "203.0.113.7"},
		"IPv6":                                    {"[2001:db8:1::9]:1", []string{"2001:db8:2::7"}, "2001:db8:2::7"},
		"IPv6 with a port":                        {"[2001:db8:1::9]:1", []string{"[2001:db8:2::7]:4711"}, "2001:db8:2::7"},
		"IPv4 written as IPv6":                    {"[::ffff:10.0.0.1]:1", []string{"::ffff:203.0.113.7"}, "203.0.113.7"},
		"a stranger of IPv4 in an IPv6 disguise":  {"[::ffff:203.0.113.7]:1", []string{"198.51.100.1"}, "203.0.113.7"},
		"a local socket has no address":           {"@", []string{"198.51.100.1"}, "@"},
		"another header of the same sense is not": {"10.0.0.1:1", []string{}, "10.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.RemoteAddr = c.peer
			r.Header["X-Forwarded-For"] = c.headers
			r.Header.Set("X-Real-Ip", "192.0.2.1")
			r.Header.Set("Forwarded", "for=192.0.2.1")
			got := ""
			trusted.wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if got = r.RemoteAddr; parseAddr(got).IsValid() {
					got = parseAddr(got).String()
				}
			})).ServeHTTP(httptest.NewRecorder(), r)
			if got != c.want {
				t.Errorf("client %s, want %s", got, c.want)
			}
		})
	}
}
