package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"

	"github.com/errand-bot/errand/internal/clock"
	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/doctor"
	"github.com/errand-bot/errand/internal/durable"
	"github.com/errand-bot/errand/internal/logview"
)

const (
	// acmeTimeout is the timeout for one request to the certificate authority.
	acmeTimeout = time.Minute
	// acmeRetry is the time between two attempts to get the first certificate: Let's Encrypt allows five failed ones per hour.
	acmeRetry = 15 * time.Minute
)

// certificates gets and renews the certificate of a host by ACME, with the challenge tls-alpn-01 on errand's own port.
type certificates struct {
	host    string
	manager *autocert.Manager
	now     func() time.Time
	why     string // file with the reason why there is no certificate

	attempt sync.Mutex // held while the authority may be asked

	mu      sync.Mutex
	failed  time.Time // of the latest attempt to get a certificate; zero after a success
	err     error     // of that attempt
	valid   time.Time // until when the latest certificate is valid
	trouble trouble   // of the latest attempt, also one to renew it
	noted   time.Time // when trouble was noted
}

func (s *Server) newCertificates(host string) *certificates {
	c := &certificates{host: host, now: s.opts.Now, why: whyFile(s.cfg)}
	c.manager = &autocert.Manager{
		Prompt:     autocert.AcceptTOS, // by setting tls.acme
		Cache:      autocert.DirCache(filepath.Join(s.cfg.Data, "certificates")),
		HostPolicy: autocert.HostWhitelist(host),
		Email:      s.cfg.TLS.Email,
		Client: &acme.Client{
			DirectoryURL: s.cfg.TLS.Directory, UserAgent: "errand/" + s.opts.Version, HTTPClient: &http.Client{Timeout: acmeTimeout, Transport: reasonReader{c}},
		},
	}
	return c
}

// whyFile is for commands of this host, which cannot reach an errand without a certificate.
func whyFile(cfg config.Config) string { return filepath.Join(cfg.Data, "certificates", "failure.txt") }

// CertificateFailure returns why the latest attempt to get the first certificate failed, or "" if none failed, or this user may not know.
func CertificateFailure(cfg config.Config) string {
	text, err := os.ReadFile(whyFile(cfg))
	if err != nil {
		return ""
	}
	return string(text)
}

// reasonReader is a transport to the authority that remembers why the latest attempt failed: autocert tells only that no challenge is left, and of
// a renewal nothing.
type reasonReader struct{ to *certificates }

// maxAnswer is how much of an answer of the authority is read for its reason, in bytes. The answers are smaller.
const maxAnswer = 64 << 10

func (t reasonReader) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.to.note(trouble{unreached: err.Error()})
		return nil, err
	}
	head, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		_ = resp.Body.Close()
		return nil, err
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head), resp.Body), resp.Body}
	if found, ok := readTrouble(resp, head); ok {
		t.to.note(found)
	}
	return resp, nil
}

// trouble is why the authority gave no certificate: its reason for a refusal, in its words, or what stood in the way. At most one is set.
type trouble struct{ refused, unreached string }

func (t trouble) String() string {
	switch {
	case t.refused != "":
		return "the authority says: " + t.refused
	case t.unreached != "":
		return "the authority could not be reached: " + t.unreached
	}
	return ""
}

// attemptTime is longer than an attempt with all its orders, and shorter than the time until the next one.
const attemptTime = 5 * time.Minute

// note remembers a trouble. A new order, which has none, ends that of an earlier attempt only: one attempt may make several orders.
func (c *certificates) note(t trouble) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.now(); t != (trouble{}) || now.Sub(c.noted) > attemptTime {
		c.trouble, c.noted = t, now
	}
}

// badNonce is the type of a refusal after which a request is repeated at once.
const badNonce = "urn:ietf:params:acme:error:badNonce"

// readTrouble returns what an answer of the authority says about the latest attempt: a refused request, or an authorization that failed. A new order
// begins another attempt, so that nothing stands in the way any more. All other answers say nothing.
func readTrouble(resp *http.Response, answer []byte) (found trouble, ok bool) {
	var a struct {
		Type           string   `json:"type"`
		Detail         string   `json:"detail"`
		Authorizations []string `json:"authorizations"`
		Status         any      `json:"status"` // a number in a refusal
		Challenges     []struct {
			Error struct {
				Detail string `json:"detail"`
			} `json:"error"`
		} `json:"challenges"`
	}
	err := json.Unmarshal(answer, &a)
	switch {
	case a.Type == badNonce:
		return trouble{}, false
	case resp.StatusCode >= http.StatusBadRequest && err == nil && a.Detail != "":
		return trouble{refused: logview.Plain(a.Detail)}, true
	case resp.StatusCode >= http.StatusBadRequest:
		return trouble{unreached: "it answered with status " + resp.Status}, true
	case resp.StatusCode == http.StatusCreated && len(a.Authorizations) > 0:
		return trouble{}, true
	}
	for _, c := range a.Challenges {
		if a.Status == acme.StatusInvalid && c.Error.Detail != "" {
			return trouble{refused: logview.Plain(c.Error.Detail)}, true
		}
	}
	return trouble{}, false
}

// wrap returns a listener of HTTPS on a listener. Only HTTP/1.1 is offered.
func (c *certificates) wrap(ln net.Listener) net.Listener {
	return tls.NewListener(ln, &tls.Config{
		GetCertificate: c.get, NextProtos: []string{"http/1.1", acme.ALPNProto}, MinVersion: tls.VersionTLS12,
	})
}

// canonical returns the request for the only kind of certificate that errand gets, whoever connects.
func (c *certificates) canonical() *tls.ClientHelloInfo {
	return &tls.ClientHelloInfo{
		ServerName: c.host, SignatureSchemes: []tls.SignatureScheme{tls.ECDSAWithP256AndSHA256}, SupportedCurves: []tls.CurveID{tls.CurveP256},
		CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256},
	}
}

// errOtherHost refuses connections for other hosts.
var errOtherHost = errors.New("errand has no certificate for this host")

// get returns the certificate for a connection. While there is none, nothing is tried for a while after a failure, however many connect:
// the authority limits failures. Its own connections, which check the host, are always answered.
func (c *certificates) get(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if len(hello.SupportedProtos) == 1 && hello.SupportedProtos[0] == acme.ALPNProto {
		return c.manager.GetCertificate(hello)
	}
	if !strings.EqualFold(hello.ServerName, c.host) {
		return nil, errOtherHost
	}
	return c.first()
}

// first returns the certificate, and gets the first one. Only one attempt is made at a time, and everybody else waits for its result.
func (c *certificates) first() (*tls.Certificate, error) {
	c.attempt.Lock()
	defer c.attempt.Unlock()
	now := c.now()
	c.mu.Lock()
	failed, err, valid := c.failed, c.err, c.valid
	c.mu.Unlock()
	if !valid.After(now) && !failed.IsZero() && now.Sub(failed) < acmeRetry {
		return nil, err
	}
	if !valid.After(now) { // otherwise this only reads the certificate, and the reason is that of a renewal
		c.mu.Lock()
		c.trouble = trouble{}
		c.mu.Unlock()
	}
	cert, err := c.manager.GetCertificate(c.canonical())
	return cert, c.store(cert, err)
}

// store remembers the result of an attempt, and returns its error with the authority's reason.
func (c *certificates) store(cert *tls.Certificate, err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err = err; err != nil {
		c.failed = c.now()
		if c.trouble.refused != "" && !strings.Contains(err.Error(), c.trouble.refused) {
			c.err = fmt.Errorf("%s (%w)", c.trouble, err)
		}
		if wrote := errors.Join(durable.MkdirAll(filepath.Dir(c.why), 0o700), durable.WriteFile(c.why, []byte(c.err.Error()), 0o600)); wrote != nil {
			c.err = errors.Join(c.err, wrote)
		}
		return c.err
	}
	c.failed = time.Time{}
	if leaf, err := x509.ParseCertificate(cert.Certificate[0]); err == nil && !leaf.NotAfter.Equal(c.valid) {
		c.valid, c.trouble = leaf.NotAfter, trouble{}
		_ = os.Remove(c.why) // if it stays, nobody reads it: commands reach errand now
	}
	return nil
}

// begin gets the first certificate before anybody connects, so that no webhook waits for it, and tries until it succeeds or ctx ends. An
// attempt that ctx interrupts is abandoned.
func (c *certificates) begin(ctx context.Context, log zerolog.Logger) error {
	for {
		result := make(chan error, 1)
		go func() {
			_, err := c.first()
			result <- err
		}()
		var err error
		select {
		case err = <-result:
		case <-ctx.Done():
			return nil
		}
		if err == nil {
			log.Info().Str("host", c.host).Msg("serving HTTPS")
			return nil
		}
		log.Error().Err(err).Str("host", c.host).Str("remedy", "let port 443 of this host name lead to errand's listen address; errand tries again in a quarter of an hour").
			Msg("failed to get a certificate")
		if err := clock.Sleep(ctx, acmeRetry); err != nil {
			return nil
		}
	}
}

// check returns doctor's check of the certificate. While no server runs, nothing is known about it.
func (c *certificates) check() doctor.Check {
	c.mu.Lock()
	defer c.mu.Unlock()
	return doctor.CertificateCheck(doctor.Certificate{Host: c.host, Valid: c.valid, Err: c.err, Reason: c.trouble.String(), Now: c.now})
}
