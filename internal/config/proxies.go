package config

import (
	"fmt"
	"net/netip"
	"strings"
)

// Proxies returns the valid entries of TrustedProxies as address ranges.
func (c Config) Proxies() []netip.Prefix {
	var list []netip.Prefix
	for _, text := range c.TrustedProxies {
		if p, err := parseProxy(text); err == nil {
			list = append(list, p)
		}
	}
	return list
}

// parseProxy parses an address or an address range in CIDR form. IPv4-mapped IPv6 addresses become IPv4 addresses.
func parseProxy(text string) (netip.Prefix, error) {
	if !strings.Contains(text, "/") {
		a, err := netip.ParseAddr(text)
		if err != nil || a.Zone() != "" {
			return netip.Prefix{}, fmt.Errorf("%q is not an address", text)
		}
		a = a.Unmap()
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	if err != nil || p.Addr().Is4In6() {
		return netip.Prefix{}, fmt.Errorf("%q is not a range of addresses", text)
	}
	return p.Masked(), nil
}

func (c Config) proxyProblems(r *report) {
	for i, text := range c.TrustedProxies {
		key := fmt.Sprintf("trusted_proxies[%d]", i)
		p, err := parseProxy(text)
		r.unless(err == nil, key, "%q: write an address or a range of addresses, such as 127.0.0.1 or 10.0.0.0/8", cut(text))
		r.unless(err != nil || p.Bits() > 0, key, "%q: this matches every address, so that anybody could forge theirs; write the addresses of your proxies", text)
	}
}
