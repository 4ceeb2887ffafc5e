package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/webtest"
)

// TestUnsignedBodiesTakeLittleMemory floods the built program with large unsigned webhooks, some of them truncated, and with idle
// connections. Resident memory must stay bounded, and small signed webhooks must be answered within GitHub's time limit.
func TestUnsignedBodiesTakeLittleMemory(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("the peak of the resident memory is read from /proc")
	}
	const (
		bodies, idle = 64, 300
		size         = 25_000_000
		most         = 100 << 20 // bytes of growth
	)
	p := start(t, build(t))
	for range 3 {
		deliver(t, p.addr, 1000)
	}
	before := memory(t, p, "VmRSS")

	for range idle {
		conn := dial(t, p.addr)
		_, _ = fmt.Fprint(conn, "POST /api/github/hook HTTP/1.1\r\nHost: x\r\n") // and nothing more
	}
	var flood sync.WaitGroup
	for i := range bodies {
		sent := size
		if i%3 == 0 {
			sent = size * 3 / 4
		}
		flood.Go(func() { sendUnsigned(dial(t, p.addr), size, sent) })
	}
	for range 10 {
		deliver(t, p.addr, 10_000)
	}
	flood.Wait()
	deliver(t, p.addr, 100_000)

	if growth := memory(t, p, "VmHWM") - before; growth > most {
		t.Errorf("resident memory grew by %d MB, of at most %d", growth>>20, most>>20)
	} else {
		t.Logf("resident memory grew by %d MB", growth>>20)
	}
}

// TestManyHeadersTakeLittleMemory floods the built program with requests of thousands of short headers and endless
// bodies, from more connections than the limit.
func TestManyHeadersTakeLittleMemory(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("the peak of the resident memory is read from /proc")
	}
	const most = 100 << 20 // bytes of growth
	p := start(t, build(t))
	deliver(t, p.addr, 1000)
	before := memory(t, p, "VmRSS")
	var head bytes.Buffer
	fmt.Fprintf(&head, "POST /api/github/hook HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nX-GitHub-Event: issues\r\n"+
		"X-GitHub-Delivery: d\r\nX-Hub-Signature-256: sha256=%064d\r\nContent-Length: 100000\r\n", 0)
	for i := 0; head.Len() < 35_000; i++ {
		fmt.Fprintf(&head, "%s:\r\n", strconv.FormatInt(int64(i), 36))
	}
	head.WriteString("\r\n{")
	for range 3 {
		for range 256 {
			_, _ = dial(t, p.addr).Write(head.Bytes()) // errand may close the connection
		}
		deliver(t, p.addr, 1000)
	}
	if growth := memory(t, p, "VmHWM") - before; growth > most {
		t.Errorf("resident memory grew by %d MB, of at most %d", growth>>20, most>>20)
	}
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// sendUnsigned announces a body with a well-formed but wrong signature and sends part of it. errand may close the
// connection.
func sendUnsigned(conn net.Conn, size, sent int) {
	_, err := fmt.Fprintf(conn, "POST /api/github/hook HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nX-GitHub-Event: issues\r\n"+
		"X-GitHub-Delivery: 7e1c1b5e-0000-4000-8000-000000000001\r\nX-Hub-Signature-256: sha256=%064d\r\nContent-Length: %d\r\n\r\n", 0, size)
	chunk := bytes.Repeat([]byte("x"), 100_000)
	for ; err == nil && sent > 0; sent -= len(chunk) {
		_, err = conn.Write(chunk)
	}
}

// deliver sends a signed webhook, which must be answered within GitHub's 10 seconds.
func deliver(t *testing.T, addr string, size int) {
	t.Helper()
	body := append(append([]byte(`{"zen":"`), bytes.Repeat([]byte("x"), size)...), `"}`...)
	mac := hmac.New(sha256.New, []byte("hook-secret-for-tests"))
	mac.Write(body)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/api/github/hook", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true
	for name, value := range map[string]string{
		"Content-Type": "application/json", "X-GitHub-Event": "ping", "X-GitHub-Delivery": fmt.Sprintf("delivery-%d", time.Now().UnixNano()),
		"X-Hub-Signature-256": "sha256=" + hex.EncodeToString(mac.Sum(nil)),
	} {
		req.Header.Set(name, value)
	}
	resp, err := webtest.Client().Do(req)
	if err != nil {
		t.Errorf("a signed webhook: %v", err)
		return
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("a signed webhook: status %d", resp.StatusCode)
	}
}

// memory returns a value of the process's status in bytes.
func memory(t *testing.T, p *process, name string) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(name + `:\s+(\d+) kB`).FindSubmatch(status)
	if m == nil {
		t.Fatalf("no %s in %s", name, status)
	}
	kb, err := strconv.ParseInt(string(m[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kb << 10
}
