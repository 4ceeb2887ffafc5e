package egress

import (
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"
	"time"
)

// TestAuthority: a VM that trusts errand's authority trusts it for the hosts of registries only, and also after a restart of errand.
func TestAuthority(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	secret := []byte(strings.Repeat("k", 32))
	first, err := NewAuthority(secret, []string{"packages.test"}, clock)
	if err != nil {
		t.Fatal(err)
	}
	restarted, err := NewAuthority(secret, []string{"packages.test", "more.test"}, clock)
	if err != nil {
		t.Fatal(err)
	}
	other, err := NewAuthority([]byte(strings.Repeat("x", 32)), []string{"packages.test"}, clock)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(first.PEM())
	trusted, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(trusted)
	for name, test := range map[string]struct {
		by    *Authority
		host  string
		after time.Duration
		valid bool
	}{
		"a registry":                    {by: first, host: "packages.test", valid: true},
		"after a restart":               {by: restarted, host: "packages.test", valid: true},
		"a renewed certificate":         {by: first, host: "packages.test", after: 30 * 24 * time.Hour, valid: true},
		"a host that was added later":   {by: restarted, host: "more.test"},
		"any other host":                {by: first, host: "github.com"},
		"the authority of another host": {by: other, host: "packages.test"},
	} {
		t.Run(name, func(t *testing.T) {
			now = now.Add(test.after)
			leaf, err := test.by.leaf(test.host)
			if err != nil {
				t.Fatal(err)
			}
			_, err = leaf.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: test.host, CurrentTime: now})
			if (err == nil) != test.valid {
				t.Errorf("verification: %v", err)
			}
		})
	}
}
