package server

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/acme"

	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/doctor"
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

// TestRefusalReason: the authority's reason for a refusal reaches the log and doctor.
func TestRefusalReason(t *testing.T) {
	t.Parallel()
	for detail, want := range map[string]string{
		"10.0.0.7: Connection refused\x1b[2J": "the authority says: 10.0.0.7: Connection refused",
		"":                                    "no viable challenge type found", // if it gives no reason
	} {
		s := &Server{cfg: config.Config{Data: t.TempDir(), TLS: config.TLS{ACME: true, Directory: refusingAuthority(t, detail)}}, opts: Options{Now: time.Now}}
		c := s.newCertificates("errand.example.org")
		_, err := c.first()
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("got error %v, want %q", err, want)
		}
		if found := c.check()(t.Context()); len(found) != 1 || found[0].Status != doctor.Failed || !strings.Contains(found[0].Found, want) {
			t.Errorf("doctor found %+v, want %q", found, want)
		}
		if got := CertificateFailure(s.cfg); got != err.Error() {
			t.Errorf("commands learn %q, want %v", got, err)
		}
		if _, again := c.first(); again == nil || again.Error() != err.Error() {
			t.Errorf("the next connection got %v, want %v", again, err)
		}
	}
}

// TestReasonIsOfTheLatestRenewal: doctor shows why the latest attempt to renew a certificate failed, not why an earlier one did.
func TestReasonIsOfTheLatestRenewal(t *testing.T) {
	t.Parallel()
	const (
		order    = `{"status":"pending","authorizations":["https://ca.example/1"]}`
		badNonce = `{"type":"urn:ietf:params:acme:error:badNonce","detail":"the nonce is old","status":400}`
		limited  = `{"type":"urn:ietf:params:acme:error:rateLimited","detail":"too many certificates","status":429}`
	)
	invalid := func(why string) string {
		return `{"status":"invalid","challenges":[{"status":"valid"},{"error":{"detail":"` + why + `"}}]}`
	}
	now := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	s := &Server{cfg: config.Config{Data: t.TempDir()}, opts: Options{Now: func() time.Time { return now }}}
	c := s.newCertificates("errand.example.org")
	c.valid = now.Add(12 * time.Hour)
	steps := []struct {
		after  time.Duration
		status int // 0: the connection is cut
		body   string
		want   string
	}{
		{0, http.StatusOK, invalid("no such name"), ": the authority says: no such name"},
		{time.Second, http.StatusCreated, order, ": the authority says: no such name"}, // autocert tries other challenges by other orders
		{time.Hour, http.StatusCreated, order, "was not renewed."},
		{0, http.StatusOK, `{"status":"pending"}`, "was not renewed."},
		{0, http.StatusOK, invalid("a timeout"), ": the authority says: a timeout"},
		{time.Hour, 0, "", ": the authority could not be reached: "},
		{time.Hour, http.StatusServiceUnavailable, "<html>", ": the authority could not be reached: it answered with status 503 Service Unavailable"},
		{time.Hour, http.StatusTooManyRequests, limited, ": the authority says: too many certificates"},
		{0, http.StatusBadRequest, badNonce, ": the authority says: too many certificates"},
	}
	authority := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i, err := strconv.Atoi(r.URL.Path[1:])
		if err != nil || steps[i].status == 0 {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(steps[i].status)
		_, _ = w.Write([]byte(steps[i].body))
	}))
	t.Cleanup(authority.Close)
	for i, step := range steps {
		now = now.Add(step.after)
		if resp, err := c.manager.Client.HTTPClient.Get(fmt.Sprint(authority.URL, "/", i)); err == nil {
			got, rerr := io.ReadAll(resp.Body)
			if rerr = errors.Join(rerr, resp.Body.Close()); rerr != nil || string(got) != step.body {
				t.Errorf("the client read %q, %v; want %q", got, rerr, step.body)
			}
		}
		if found := c.check()(t.Context()); len(found) != 1 || !strings.Contains(found[0].Found, step.want) {
			t.Errorf("after %d %s doctor found %+v, want %q", step.status, step.body, found, step.want)
		}
	}
}

// refusingAuthority returns the directory of an authority that refuses every certificate for a reason.
func refusingAuthority(t *testing.T, detail string) string {
	t.Helper()
	var authority *httptest.Server
	accepted := false
	challenge := func() string {
		text, err := json.Marshal(detail)
		if err != nil {
			t.Error(err)
		}
		return fmt.Sprintf(`{"type":"tls-alpn-01","url":"%s/challenge","token":"t","status":"invalid","error":{"type":"urn:ietf:params:acme:error:connection","detail":%s}}`, authority.URL, text)
	}
	authority = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Replay-Nonce", "n")
		w.Header().Set("Content-Type", "application/json")
		url, status, body := authority.URL, http.StatusOK, ""
		switch r.URL.Path {
		case "/directory":
			body = fmt.Sprintf(`{"newNonce":"%[1]s/nonce","newAccount":"%[1]s/account","newOrder":"%[1]s/order","revokeCert":"%[1]s/x","keyChange":"%[1]s/x"}`, url)
		case "/account":
			w.Header().Set("Location", url+"/account/1")
			status, body = http.StatusCreated, `{"status":"valid"}`
		case "/order":
			accepted = false
			w.Header().Set("Location", url+"/order/1")
			status, body = http.StatusCreated, fmt.Sprintf(`{"status":"pending","authorizations":["%s/authorization"]}`, url)
		case "/challenge":
			accepted = true
			body = challenge()
		case "/authorization":
			body = fmt.Sprintf(`{"status":"%s","identifier":{"type":"dns","value":"errand.example.org"},"challenges":[%s]}`, map[bool]string{true: "invalid", false: "pending"}[accepted], challenge())
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(authority.Close)
	return authority.URL + "/directory"
}
