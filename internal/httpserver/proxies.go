package httpserver

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// proxies are the addresses of reverse proxies whose X-Forwarded-For header is believed.
type proxies []netip.Prefix

func (p proxies) trust(a netip.Addr) bool {
	return slices.ContainsFunc(p, func(prefix netip.Prefix) bool { return prefix.Contains(a) })
}

// wrap has next see the client's address, and not that of a trusted proxy, as the request's RemoteAddr.
func (p proxies) wrap(next http.Handler) http.Handler {
	if len(p) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if client := p.client(r); client.IsValid() {
			r.RemoteAddr = net.JoinHostPort(client.String(), "0")
		}
		next.ServeHTTP(w, r)
	})
}

// client returns the address that a request was sent from: the peer's, or if that is a trusted proxy, the right-most
// address of X-Forwarded-For that is none. Each proxy appends the address that it was called from, so entries to the left
// of that one may be forged. The zero address means that RemoteAddr is no address.
func (p proxies) client(r *http.Request) netip.Addr {
	at := parseAddr(r.RemoteAddr)
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		if !p.trust(at) {
			break
		}
		from := parseAddr(strings.TrimSpace(hop))
		if !from.IsValid() {
			break // written by somebody who cannot be believed
		}
		at = from
	}
	return at
}

// parseAddr reads an address with or without a port; the zero address means that it is none.
func parseAddr(text string) netip.Addr {
	if host, _, err := net.SplitHostPort(text); err == nil {
		text = host
	}
	a, err := netip.ParseAddr(strings.Trim(text, "[]"))
	if err != nil {
		return netip.Addr{}
	}
	return a.Unmap().WithZone("")
}
