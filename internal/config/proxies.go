package config

import (
	"fmt"
	"net/netip"
	"strings"
)

// Proxies returns TrustedProxies as ranges of addresses, those that are valid.
func (c Config) Proxies() []netip.Prefix {
	var list []netip.Prefix
	for _, text := range c.TrustedProxies {
		if p, err := parseProxy(text); err == nil {
			list = append(list, p)
		}
	}
	return list
}

// parseProxy reads an address or a range of addresses in CIDR form. IPv4 addresses written as IPv6 are taken for IPv4.
func parseProxy(text string) (netip.Prefix, error) {
	if !strings.Contains(text, "/") {
		a, err := netip.ParseAddr(text)
		if err != nil || a.Zone() != "" {
			return netip.Prefix{}, fmt.Errorf("%q is no address", text)
		}
		a = a.Unmap()
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	if err != nil || p.Addr().Is4In6() {
		return netip.Prefix{}, fmt.Errorf("%q is no range of addresses", text)
	}
	return p.Masked(), nil
}

func (c Config) proxyProblems(r *report) {
	for i, text := range c.TrustedProxies {
		key := fmt.Sprintf("trusted_proxies[%d]", i)
		p, err := parseProxy(text)
		r.unless(err == nil, key, "%q: write an address or a range of addresses, such as 127.0.0.1 or 10.0.0.0/8", cut(text))
		r.unless(err != nil || p.Bits() > 0, key, "%q: that is everybody, and anybody could then forge an address; write the addresses of your proxies", text)
	}
}
