package config

import (
	"fmt"
	"net"
	"net/url"
	"strings"

	"golang.org/x/crypto/acme/autocert"
	"golang.org/x/net/idna"
)

// TLS serves HTTPS at listen, without a reverse proxy.
type TLS struct {
	// ACME serves HTTPS at listen with a certificate for the host of public_url, which errand gets from a certificate authority and
	// renews. By setting it to true you accept the terms of service of that authority, which by default is Let's Encrypt.
	ACME bool `yaml:"acme"`
	// Email is the address to which the authority may send warnings about the certificate.
	Email string `yaml:"email"`
	// Directory is the address of the authority's ACME directory.
	Directory string `yaml:"directory"`
}

// TLSHost returns the host for which errand serves HTTPS itself, or "" if it serves HTTP.
func (c Config) TLSHost() string {
	if !c.TLS.ACME {
		return ""
	}
	u, err := url.Parse(c.PublicURL)
	if err != nil {
		return ""
	}
	host, err := idna.Lookup.ToASCII(strings.TrimSuffix(u.Hostname(), ".")) // as clients name it
	if err != nil {
		return ""
	}
	return host
}

func (c Config) tlsProblems(r *report) {
	t := c.TLS
	r.unless(t.Email == "" || strings.Count(t.Email, "@") == 1 && !strings.ContainsAny(t.Email, " \t\r\n<>"), "tls.email", "%q: write one address, such as ada@example.org", cut(t.Email))
	d, err := url.Parse(t.Directory)
	r.unless(err == nil && d.Scheme == "https" && d.Host != "", "tls.directory", "%q: write an address that begins with https://", cut(t.Directory))
	if !t.ACME {
		return
	}
	r.fail("public_url", CheckTLSHost(c.PublicURL))
}

// CheckTLSHost returns why no certificate can be had by ACME for the host of an address.
func CheckTLSHost(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" || net.ParseIP(u.Hostname()) != nil || !strings.Contains(strings.Trim(u.Hostname(), "."), ".") {
		return fmt.Errorf("%q: write https:// and a host name, such as https://errand.example.org: errand gets a certificate for it", cut(address))
	}
	if _, err := idna.Lookup.ToASCII(strings.TrimSuffix(u.Hostname(), ".")); err != nil {
		return fmt.Errorf("%q: this is no host name: %w", cut(address), err)
	}
	if u.Port() != "" && u.Port() != "443" {
		return fmt.Errorf("%q: write it without a port: the certificate authority connects to port 443", cut(address))
	}
	return nil
}

// defaultDirectory is the directory of Let's Encrypt.
const defaultDirectory = autocert.DefaultACMEDirectory
