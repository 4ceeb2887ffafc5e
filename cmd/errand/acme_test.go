package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/errand-bot/errand/handlers"
	"github.com/errand-bot/errand/internal/doctor"
	"github.com/errand-bot/errand/internal/heavytest"
)

// authority is a certificate authority: a Pebble process, which checks each host name at errand's port.
type authority struct {
	t         *testing.T
	dir       string
	directory string
	bundle    string // file with the certificate of its API and, once read, that of its issuer
	manage    string
	cmd       *exec.Cmd
}

// newAuthority starts Pebble. It finds every host on this host, and checks it at a port.
func newAuthority(t *testing.T, port int) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	bin := a.path("pebble")
	build := exec.Command("go", "build", "-modfile=../../.ci/tools.mod", "-o", bin, "github.com/letsencrypt/pebble/v2/cmd/pebble")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build Pebble: %v\n%s", err, out)
	}
	api, manage := freeAddress(t), freeAddress(t)
	a.directory, a.manage, a.bundle = "https://"+api+"/dir", "https://"+manage, a.path("bundle.pem")
	a.certify()
	config := map[string]any{"pebble": map[string]any{
		"listenAddress": api, "managementListenAddress": manage, "certificate": a.bundle, "privateKey": a.path("key.pem"), "httpPort": 1, "tlsPort": port,
		"keyAlgorithm": "ecdsa", "profiles": map[string]any{"default": map[string]any{"description": "all", "validityPeriod": 7776000}},
	}}
	data, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	a.write("pebble.json", data)
	a.cmd = exec.Command(bin, "-strict", "-config", a.path("pebble.json"), "-dnsserver", serveNames(t))
	a.cmd.Env = append(os.Environ(), "PEBBLE_VA_NOSLEEP=1", "PEBBLE_WFE_NONCEREJECT=0")
	log := &bytes.Buffer{}
	a.cmd.Stdout, a.cmd.Stderr = log, log
	if err := a.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		a.stop()
		if t.Failed() {
			t.Log(log)
		}
	})
	a.readIssuer()
	return a
}

func (a *authority) path(name string) string { return filepath.Join(a.dir, name) }

func (a *authority) write(name string, data []byte) {
	a.t.Helper()
	if err := os.WriteFile(a.path(name), data, 0o600); err != nil {
		a.t.Fatal(err)
	}
}

func (a *authority) stop() {
	_ = a.cmd.Process.Kill()
	_ = a.cmd.Wait()
}

// certify makes the certificate of the API.
func (a *authority) certify() {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		a.t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	a.write("bundle.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	a.write("key.pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
}

// pool returns the certificates of the bundle.
func (a *authority) pool() *x509.CertPool {
	a.t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(read(a.t, a.bundle)) {
		a.t.Fatal("there is no certificate in the bundle")
	}
	return pool
}

// readIssuer waits for Pebble and adds the certificate with which it signs to the bundle.
func (a *authority) readIssuer() {
	a.t.Helper()
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: a.pool()}}, Timeout: 10 * time.Second}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range 1500 {
		<-tick.C
		resp, err := client.Get(a.manage + "/roots/0")
		if err != nil {
			continue
		}
		issuer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			a.t.Fatalf("Pebble answered %s: %v", resp.Status, err)
		}
		a.write("bundle.pem", append(read(a.t, a.bundle), issuer...))
		return
	}
	a.t.Fatal("Pebble does not answer")
}

func freeAddress(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	return ln.Addr().String()
}

// serveNames runs a DNS server, over TCP, for which every name is this host.
func serveNames(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			_ = conn.SetDeadline(time.Now().Add(time.Minute))
			answerNames(conn)
			_ = conn.Close()
		}
	}()
	return ln.Addr().String()
}

// answerNames answers the questions of a connection. A message follows its length.
func answerNames(conn net.Conn) {
	for {
		var size [2]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return
		}
		question := make([]byte, binary.BigEndian.Uint16(size[:]))
		var m dnsmessage.Message
		if _, err := io.ReadFull(conn, question); err != nil || m.Unpack(question) != nil || len(m.Questions) != 1 {
			return
		}
		m.Response, m.Additionals = true, nil
		if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
			m.Answers = []dnsmessage.Resource{{
				Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}, Body: &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}},
			}}
		}
		answer, err := m.Pack()
		if err != nil {
			return
		}
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...)); err != nil {
			return
		}
	}
}

// TestHeavyCertificate: errand gets its certificate from an authority that checks the host name at errand's port, serves pages and
// webhooks with it, keeps it over a restart without the authority, and its commands reach it by HTTPS.
func TestHeavyCertificate(t *testing.T) {
	heavytest.Mark(t)
	t.Parallel()
	bin := build(t)
	c := newClinic(t, bin)
	listen := freeAddress(t)
	_, port, _ := net.SplitHostPort(listen)
	number := 0
	if _, err := fmt.Sscan(port, &number); err != nil {
		t.Fatal(err)
	}
	ca := newAuthority(t, number)
	c.config["listen"], c.config["tls"], c.config["timing"] = listen, fmt.Sprintf("{acme: true, email: ada@example.org, directory: '%s'}", ca.directory), "{shutdown: 1s}"
	file := c.file()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	with := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, bin, args...)
		cmd.Env = append(os.Environ(), "SSL_CERT_FILE="+ca.bundle, "SSL_CERT_DIR="+t.TempDir())
		return cmd
	}
	p := begin(t, with("serve", "-c", file))
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: ca.pool()},
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", listen)
		},
		DisableKeepAlives: true,
	}}
	serial := func() string {
		t.Helper()
		resp, err := client.Get("https://errand.example.org/healthz")
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("got %s", resp.Status)
		}
		return resp.TLS.PeerCertificates[0].SerialNumber.String()
	}
	first := serial()
	if err := sendWebhookBy(client, "https://errand.example.org"+handlers.HookPath, guidOf(1)); err != nil {
		t.Error(err)
	}
	if out, err := with("doctor", "-c", file).CombinedOutput(); !bytes.Contains(out, []byte("The certificate for errand.example.org is valid until")) {
		t.Errorf("doctor: %v\n%s", err, out)
	}
	for _, host := range []string{"other.example.org", ""} {
		conn, err := tls.Dial("tcp", listen, &tls.Config{ServerName: host, InsecureSkipVerify: true})
		if err == nil {
			_ = conn.Close()
			t.Errorf("a connection for %q got a certificate", host)
		}
	}
	p.stop(t)
	ca.stop()
	p = begin(t, with("serve", "-c", file))
	if again := serial(); again != first {
		t.Errorf("after the restart: got certificate %s, want %s", again, first)
	}
	if out, err := with("status", "-c", file).CombinedOutput(); err != nil {
		t.Errorf("status: %v\n%s", err, out)
	}
	p.stop(t)
}

// TestDoctorWithoutCertificate: while errand has no certificate, doctor cannot ask it, and reports the missing certificate with errand's reason instead of
// advising a restart, which would cost another attempt.
func TestDoctorWithoutCertificate(t *testing.T) {
	t.Parallel()
	c := newClinic(t, build(t))
	c.config["tls"] = "{acme: true, directory: 'https://127.0.0.1:1/dir'}"
	c.serve()
	c.log.Await(t.Context(), regexp.MustCompile("(failed to get a certificate)"))
	_, report := c.doctor()
	for _, f := range report.Findings {
		if f.Check == "certificate" && f.Status == doctor.Failed && strings.Contains(f.Fix, "port 443 of errand.example.org") && strings.Contains(f.Found, "127.0.0.1:1: connect: connection refused") {
			return
		}
	}
	t.Errorf("got no finding about the certificate: %+v", report.Findings)
}
