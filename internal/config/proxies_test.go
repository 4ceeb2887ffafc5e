package config_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/config"
)

func TestProxies(t *testing.T) {
	t.Parallel()
	c := config.Config{TrustedProxies: []string{"127.0.0.1", "10.1.2.3/8", "::1", "2001:db8::/32", "::ffff:192.0.2.1"}}
	want := []string{"127.0.0.1/32", "10.0.0.0/8", "::1/128", "2001:db8::/32", "192.0.2.1/32"}
	var got []string
	for _, p := range c.Proxies() {
		got = append(got, p.String())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if !c.Proxies()[1].Contains(netip.MustParseAddr("10.200.0.1")) {
		t.Error("a range does not hold its addresses")
	}
}
