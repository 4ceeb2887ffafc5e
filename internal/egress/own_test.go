package egress

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// TestOwnAddressesAreCurrent: addresses that this host gets while errand runs are refused, and if the
// addresses cannot be listed every request is refused.
func TestOwnAddressesAreCurrent(t *testing.T) {
	t.Parallel()
	address := net.ParseIP("93.184.215.14")
	var own []net.Addr
	var failure error
	p := New(Config{
		Resolver:     names{"registry.test": {"::ffff:93.184.215.14"}},
		OwnAddresses: func() ([]net.Addr, error) { return own, failure },
	})
	for name, test := range map[string]struct {
		own     []net.Addr
		failure error
		want    string
	}{
		"no addresses":    {nil, nil, ""},
		"its own":         {[]net.Addr{&net.IPNet{IP: address, Mask: net.CIDRMask(32, 32)}}, nil, "errand's own host"},
		"in four bytes":   {[]net.Addr{&net.IPNet{IP: address.To4(), Mask: net.CIDRMask(32, 32)}}, nil, "errand's own host"},
		"a neighbor's":    {[]net.Addr{&net.IPNet{IP: net.ParseIP("93.184.215.15"), Mask: net.CIDRMask(24, 32)}}, nil, ""},
		"cannot be asked": {nil, errors.New("no netlink"), "no netlink"},
	} {
		own, failure = test.own, test.failure
		_, err := p.lookUp(t.Context(), "registry.test")
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestOwnAddressesByDefault lists this host's addresses.
func TestOwnAddressesByDefault(t *testing.T) {
	t.Parallel()
	own, err := New(Config{}).ownAddresses()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc([]string{"127.0.0.1", "::1"}, func(a string) bool { return own[netip.MustParseAddr(a)] }) {
		t.Errorf("no loopback among %v", own)
	}
}
