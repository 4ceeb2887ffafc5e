package server

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/acme"

	"github.com/errand-bot/errand/internal/config"
)

// TestFailuresAreLimited: however many connect, the authority is asked for a certificate only once in a quarter of an hour after a failure,
// and not at all for another host. Its own connections are not limited.
func TestFailuresAreLimited(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	authority := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(authority.Close)
	now := time.Now()
	s := &Server{cfg: config.Config{Data: t.TempDir(), TLS: config.TLS{ACME: true, Directory: authority.URL}}, opts: Options{Now: func() time.Time { return now }}}
	c := s.newCertificates("errand.example.org")
	hello := func(host string, protocols ...string) error {
		cert, err := c.get(&tls.ClientHelloInfo{ServerName: host, SupportedProtos: protocols})
		if err == nil {
			t.Errorf("%q got a certificate: %v", host, cert)
		}
		return err
	}
	if _ = hello("other.example.org"); asked.Load() != 0 {
		t.Error("the authority was asked for another host")
	}
	first := hello("errand.example.org")
	for range 5 {
		for _, err := range []error{
			hello("errand.example.org", "http/1.1"), hello("ERRAND.example.ORG"), hello("errand.example.org", acme.ALPNProto, "http/1.1"),
		} {
			if err.Error() != first.Error() {
				t.Errorf("got %v, want the first error %v", err, first)
			}
		}
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("the authority was asked %d times, want once", n)
	}
	if err := hello("errand.example.org", acme.ALPNProto); err.Error() == first.Error() {
		t.Errorf("the authority's own connection got %v", err)
	}
	now = now.Add(acmeRetry)
	if _ = hello("errand.example.org"); !c.failed.Equal(now) {
		t.Error("nothing was tried after a quarter of an hour")
	}
	found := c.check()(t.Context())
	if len(found) != 1 || found[0].Status != "failed" || found[0].Fix == "" {
		t.Errorf("doctor found %+v", found)
	}
}
