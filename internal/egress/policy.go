package egress

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// A Policy defines which hosts a task's VM may reach.
type Policy struct {
	// Allow lists hosts: "proxy.example.org", or "*.example.org" for all its subdomains (but not itself), each with
	// ":PORT" for ports other than 443 and 80. It does not contain groups; see [Hosts].
	Allow []string
	// Registries are servers of packages to which the proxy adds credentials. They need not be in Allow.
	Registries []Registry
}

var (
	hostName = regexp.MustCompile(`^(\*\.)?([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`)
	portName = regexp.MustCompile(`^[1-9][0-9]{0,4}$`)
)

// Check returns an error if an entry of an allow-list is malformed.
func Check(entry string) error {
	if _, ok := groupByName(entry); ok {
		return nil
	}
	host, port, ok := strings.Cut(entry, ":")
	if !hostName.MatchString(host) || len(host) > 253 || ok && !portName.MatchString(port) {
		return fmt.Errorf("%q: write a host in lower case, such as proxy.example.org, *.example.org or example.org:8443, or a group: %s", entry, groupNames())
	}
	return nil
}

// check returns a *[RefusedError] if the policy does not allow the host and port.
func (p Policy) check(host, port string) error {
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil || looksLikeAddress(host) {
		return refuse("%s is an address; only host names are allowed", host)
	}
	if !hostName.MatchString(host) || strings.HasPrefix(host, "*") {
		return refuse("%q is not a host name", host)
	}
	if slices.ContainsFunc(p.Allow, func(entry string) bool { return matches(entry, host, port) }) {
		return nil
	}
	return refuse("%s is not on the list of hosts that may be reached; the operator can add %s to egress.allow", net.JoinHostPort(host, port), allowEntryFor(host, port))
}

// matches reports whether an entry of the list covers this host and port.
func matches(entry, host, port string) bool {
	name, wanted, fixed := strings.Cut(entry, ":")
	if fixed && port != wanted || !fixed && port != "443" && port != "80" {
		return false
	}
	if below, ok := strings.CutPrefix(name, "*"); ok {
		return strings.HasSuffix(host, below) && len(host) > len(below)
	}
	return host == name
}

// looksLikeAddress reports whether resolvers could parse the name as an IPv4 address: 127.1, 0x7f000001, 2130706433. No
// top-level domain is numeric.
func looksLikeAddress(host string) bool {
	last := host[strings.LastIndexByte(host, '.')+1:]
	return last == "" || last[0] >= '0' && last[0] <= '9'
}

// requestTarget returns the requested host and port.
func requestTarget(r *http.Request) (host, port string, err error) {
	address, fallback := r.URL.Host, "80"
	if r.Method == http.MethodConnect {
		address, fallback = r.Host, "443"
	} else if r.URL.Scheme != "http" {
		return "", "", refuse("this proxy does not support %s", r.URL.Scheme)
	}
	host, port, err = net.SplitHostPort(address)
	if err != nil {
		host, port = address, fallback
	}
	if host = strings.ToLower(strings.TrimSuffix(host, ".")); host == "" || !portName.MatchString(port) {
		return "", "", refuse("%q is not a host", address)
	}
	return host, port, nil
}

// specialRanges returns ranges that are not public although Go's predicates do not exclude them: those of the IANA
// special-purpose registries, and public ones that clouds use for internal services.
func specialRanges() []netip.Prefix {
	var list []netip.Prefix
	for _, s := range []string{
		"168.63.129.16/32",              // Azure: serves certificates and settings to a VM's agent
		"161.26.0.0/16", "166.8.0.0/14", // IBM Cloud: services on its private network
		"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
		"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
	} {
		list = append(list, netip.MustParsePrefix(s))
	}
	return list
}

// globalRange returns the allocated part of the IPv6 space. Other addresses are not routed, or embed an IPv4 address and
// would bypass the checks.
func globalRange() netip.Prefix { return netip.MustParsePrefix("2000::/3") }

// isPublic reports whether a is a public internet address.
func isPublic(a netip.Addr) bool {
	a = a.Unmap()
	if !a.IsValid() || a.Zone() != "" || !a.IsGlobalUnicast() || a.IsPrivate() || a.Is6() && !globalRange().Contains(a) {
		return false
	}
	return !slices.ContainsFunc(specialRanges(), func(p netip.Prefix) bool { return p.Contains(a) })
}
