package egress

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"sync"
	"time"
)

// The lifetimes of certificates. A clock of a VM may be a day behind.
const (
	authorityLifetime = 10 * 365 * 24 * time.Hour
	leafLifetime      = 7 * 24 * time.Hour
	leafRenewal       = 24 * time.Hour // before its end
	clockSkew         = 24 * time.Hour
)

// An Authority issues the certificates with which the proxy answers in place of registries. VMs that use registries trust it, for the hosts of
// the configured registries and their subdomains only. It is safe for concurrent use.
type Authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	now  func() time.Time

	mu     sync.Mutex
	leaves map[string]*tls.Certificate
}

// NewAuthority returns an Authority for hosts. The same secret, of at least 32 random bytes, results in the same key, so that VMs continue to
// trust an Authority after a restart.
func NewAuthority(secret []byte, hosts []string, now func() time.Time) (*Authority, error) {
	key, err := keyOf(secret)
	if err != nil {
		return nil, err
	}
	public, err := key.PublicKey.Bytes()
	if err != nil {
		return nil, fmt.Errorf("encode the key of the registries' authority: %w", err)
	}
	id := sha256.Sum256(public)
	template, err := certificate(now(), authorityLifetime)
	if err != nil {
		return nil, err
	}
	template.Subject = pkix.Name{CommonName: "errand registries"}
	template.SubjectKeyId = id[:20]
	template.IsCA, template.BasicConstraintsValid, template.MaxPathLenZero = true, true, true
	template.KeyUsage = x509.KeyUsageCertSign
	template.PermittedDNSDomains, template.PermittedDNSDomainsCritical = hosts, true
	template.ExcludedIPRanges = []*net.IPNet{{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)}, {IP: net.IPv6zero, Mask: net.CIDRMask(0, 128)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make the certificate of the registries' authority: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("read the certificate of the registries' authority: %w", err)
	}
	return &Authority{key: key, cert: cert, now: now, leaves: map[string]*tls.Certificate{}}, nil
}

// keyOf derives a key from a secret. One hash in 2^32 is no key of the curve; the next one is taken.
func keyOf(secret []byte) (*ecdsa.PrivateKey, error) {
	sum := sha256.Sum256(append([]byte("errand registries\n"), secret...))
	for range 8 {
		if key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), sum[:]); err == nil {
			return key, nil
		}
		sum = sha256.Sum256(sum[:])
	}
	return nil, fmt.Errorf("derive the key of the registries' authority: no hash is a key")
}

// certificate returns a template with a random serial number.
func certificate(now time.Time, lifetime time.Duration) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("choose a serial number: %w", err)
	}
	return &x509.Certificate{SerialNumber: serial, NotBefore: now.Add(-clockSkew), NotAfter: now.Add(lifetime)}, nil
}

// PEM returns the Authority's own certificate.
func (a *Authority) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

// leaf returns a certificate for a host.
func (a *Authority) leaf(host string) (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.leaves[host]; c != nil && a.now().Before(c.Leaf.NotAfter.Add(-leafRenewal)) {
		return c, nil
	}
	template, err := certificate(a.now(), leafLifetime)
	if err != nil {
		return nil, err
	}
	template.Subject, template.DNSNames = pkix.Name{CommonName: host}, []string{host}
	template.KeyUsage, template.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, a.key.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("make a certificate for %s: %w", host, err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("read the certificate for %s: %w", host, err)
	}
	c := &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: a.key, Leaf: parsed}
	a.leaves[host] = c
	return c, nil
}
