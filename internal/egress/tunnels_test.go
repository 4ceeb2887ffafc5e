package egress

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// tunnel opens a tunnel to packages.test, and returns the TLS connection in it.
func (p *packages) tunnel(t *testing.T) net.Conn {
	t.Helper()
	conn, err := dialer.DialContext(t.Context(), "tcp", p.proxy.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // it may be closed already
	_ = conn.SetDeadline(time.Now().Add(soon))
	_, _ = io.WriteString(conn, "CONNECT packages.test:443 HTTP/1.1\r\nHost: packages.test:443\r\n\r\n")
	if answer, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("the tunnel: %v %v", answer, err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(p.authority.PEM())
	return tls.Client(conn, &tls.Config{ServerName: "packages.test", RootCAs: roots, MinVersion: tls.VersionTLS12})
}

// TestRequestTargets: only a path is a target that is answered, because servers understand the other forms differently.
func TestRequestTargets(t *testing.T) {
	t.Parallel()
	for _, target := range []string{"x:http://admin.test/secret", "https:admin.test/../secret", "https://packages.test/repository/npm/x", "*", "packages.test:443"} {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			p := newPackages(t, echo)
			p.policy.Registries[0].URL.Path = "" // a registry without a path is the most generous one
			conn := p.tunnel(t)
			method := http.MethodGet
			if target == "*" {
				method = http.MethodOptions
			}
			if _, err := io.WriteString(conn, method+" "+target+" HTTP/1.1\r\nHost: packages.test\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			if answer.StatusCode < 400 || len(p.seen) > 0 {
				t.Errorf("status %d, %d requests reached the registry", answer.StatusCode, len(p.seen))
			}
		})
	}
}

// TestCredentialIsWithheld: an answer that contains the credential in any form ends before it, also if it arrives in pieces.
func TestCredentialIsWithheld(t *testing.T) {
	t.Parallel()
	basic := base64.StdEncoding.EncodeToString([]byte("bot:" + npmToken))
	for name, text := range map[string]string{
		"as it is":             "token = " + npmToken + "\n",
		"in base64":            "_password=" + base64.StdEncoding.EncodeToString([]byte(npmToken)) + "\n",
		"as name and password": "_auth=" + basic + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPackages(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("X-Echo", text)
				for _, c := range []byte(strings.Repeat("-", 70_000) + text) {
					_, _ = w.Write([]byte{c})
				}
			})
			if strings.Contains(name, "name") {
				p.policy.Registries[0].Value = "Basic " + basic
			}
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://packages.test/repository/npm/x", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			var body []byte
			answer, err := p.client.Do(r)
			if err == nil {
				defer answer.Body.Close()
				body, err = io.ReadAll(answer.Body)
			}
			if err == nil || holdsSecret(body, p.policy.Registries[0].secrets()) || strings.Contains(string(body), npmToken[:8]) || answer != nil && answer.Header.Get("X-Echo") != "" {
				t.Errorf("got %v and %.100q", err, body[max(0, len(body)-100):])
			}
			p.client.CloseIdleConnections()
			p.awaitRecords(t, 1)
			if record, _ := p.last(t); !strings.Contains(record.Reason, "it contains the credential") {
				t.Errorf("recorded %+v", record)
			}
		})
	}
}

// awaitRecords waits until requests were recorded.
func (p *packages) awaitRecords(t *testing.T, n int) {
	t.Helper()
	for range n {
		select {
		case <-p.recorded:
		case <-time.After(soon):
			t.Fatal("a request was not recorded")
		}
	}
}

// TestBrokenOffDownloadIsRecorded: a VM cannot hide a download by closing the connection before its end.
func TestBrokenOffDownloadIsRecorded(t *testing.T) {
	t.Parallel()
	p := newPackages(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "20000000")
		for range 20 {
			_, _ = w.Write(make([]byte, 1_000_000))
		}
	})
	conn := p.tunnel(t)
	if _, err := io.WriteString(conn, "GET /repository/npm/x HTTP/1.1\r\nHost: packages.test\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if n, err := io.ReadFull(conn, make([]byte, 1_000_000)); err != nil {
		t.Fatalf("read %d bytes: %v", n, err)
	}
	_ = conn.Close()
	p.awaitRecords(t, 1)
	if record, _ := p.last(t); !record.Allowed || record.Received < 900_000 || !strings.Contains(record.Reason, "broken off") {
		t.Errorf("recorded %+v", record)
	}
}

// TestIdleTunnelsEnd: a tunnel ends if nothing moves in it, whatever its client waits for.
func TestIdleTunnelsEnd(t *testing.T) {
	t.Parallel()
	for name, send := range map[string]string{
		"nothing is sent":        "",
		"half a header":          "GET /repository/npm/x HTTP/1.1\r\nHost:",
		"a body that is not":     "POST /repository/npm/x HTTP/1.1\r\nHost: packages.test\r\nContent-Length: 1000\r\n\r\n",
		"answers are not read":   strings.Repeat("GET /elsewhere HTTP/1.1\r\nHost: packages.test\r\n\r\n", 1000),
		"a download is not read": "GET /repository/npm/x HTTP/1.1\r\nHost: packages.test\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPackages(t, func(w http.ResponseWriter, _ *http.Request) {
				for range 50 {
					_, _ = w.Write(make([]byte, 1_000_000))
				}
			})
			conn := p.tunnel(t)
			_, _ = io.WriteString(conn, send) // the tunnel may end before all is sent
			select {
			case <-p.ended:
			case <-time.After(soon):
				t.Error("the tunnel has not ended")
			}
		})
	}
}
