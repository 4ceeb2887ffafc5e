package tetherd_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/errand-bot/errand/internal/runner/tetherd"
)

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(time.Minute); !condition(); <-ticker.C {
		if time.Now().After(deadline) {
			t.Fatalf("waited too long until %s", what)
		}
	}
}

// serve starts a daemon and returns its directory and address.
func serve(t *testing.T, config tetherd.Config) (dir, address string) {
	t.Helper()
	if config.Dir == "" {
		config.Dir = t.TempDir()
	}
	config.Listen = "127.0.0.1:0"
	ready := make(chan tetherd.Status, 1)
	config.Ready = func(s tetherd.Status) { ready <- s }
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- tetherd.Serve(ctx, config) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	select {
	case status := <-ready:
		return config.Dir, status.Listen
	case err := <-ended:
		ended <- nil
		t.Fatal(err)
		return "", ""
	}
}

// orchestrator is the other side: an HTTP server that answers with its name.
type orchestrator struct {
	session *yamux.Session
	ended   chan error // of Attach
	hangUp  context.CancelFunc
}

func attach(t *testing.T, dir, name string, handle http.HandlerFunc) *orchestrator {
	t.Helper()
	ours, theirs := net.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	o := &orchestrator{ended: make(chan error, 1), hangUp: func() { cancel(); _ = ours.Close() }}
	go func() {
		o.ended <- tetherd.Attach(ctx, dir, theirs, theirs)
		_ = theirs.Close()
	}()
	config := yamux.DefaultConfig()
	config.LogOutput = io.Discard
	session, err := yamux.Server(ours, config)
	if err != nil {
		t.Fatal(err)
	}
	o.session = session
	if handle == nil {
		handle = func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			fmt.Fprintf(w, "%s got %s", name, body)
		}
	}
	server := &http.Server{Handler: handle}
	go func() { _ = server.Serve(session) }()
	t.Cleanup(func() {
		o.hangUp()
		_ = server.Close()
	})
	return o
}

// post sends a request as an agent's CLI would.
func post(ctx context.Context, address, body string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/llm/x", strings.NewReader(body))
	if err != nil {
		return "", err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	return string(answer), err
}

func status(t *testing.T, dir string) tetherd.Status {
	t.Helper()
	s, err := tetherd.Ask(testContext(t), dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestRequestsPass(t *testing.T) {
	t.Parallel()
	dir, address := serve(t, tetherd.Config{})
	attach(t, dir, "one", nil)
	large := strings.Repeat("x", 1<<20)
	answers := make(chan error, 20)
	for i := range cap(answers) {
		go func() {
			body := fmt.Sprint(i, large)
			answer, err := post(testContext(t), address, body)
			if err == nil && answer != "one got "+body {
				err = fmt.Errorf("answer of %d bytes", len(answer))
			}
			answers <- err
		}()
	}
	for range cap(answers) {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
}

func TestRequestIsHeldUntilSomebodyAttaches(t *testing.T) {
	t.Parallel()
	dir, address := serve(t, tetherd.Config{})
	type result struct {
		answer string
		err    error
	}
	results := make(chan result, 1)
	go func() {
		answer, err := post(testContext(t), address, "question")
		results <- result{answer, err}
	}()
	until(t, "the request waits", func() bool { s := status(t, dir); return s.Unattached == 1 && s.Open == 1 })
	attach(t, dir, "late", nil)
	if got := <-results; got.err != nil || got.answer != "late got question" {
		t.Errorf("got %+v", got)
	}
	if s := status(t, dir); !s.Attached || s.Unattached != 0 {
		t.Errorf("status %+v", s)
	}
}

func TestRequestsAreHeldAgainAfterACut(t *testing.T) {
	t.Parallel()
	dir, address := serve(t, tetherd.Config{})
	first := attach(t, dir, "first", nil)
	if answer, err := post(testContext(t), address, "a"); err != nil || answer != "first got a" {
		t.Fatalf("answer %q, %v", answer, err)
	}
	first.hangUp()
	until(t, "the cut is noticed", func() bool { return !status(t, dir).Attached })
	results := make(chan string, 1)
	go func() {
		answer, err := post(testContext(t), address, "b")
		results <- fmt.Sprint(answer, err)
	}()
	until(t, "the request waits", func() bool { return status(t, dir).Unattached == 1 })
	attach(t, dir, "second", nil)
	if got := <-results; got != "second got b<nil>" {
		t.Errorf("got %s", got)
	}
}

func TestNewerAttachDisplacesOlder(t *testing.T) {
	t.Parallel()
	dir, address := serve(t, tetherd.Config{})
	older := attach(t, dir, "older", nil)
	until(t, "the older is attached", func() bool { return status(t, dir).Attached })
	attach(t, dir, "newer", nil)
	select {
	case <-older.ended:
	case <-testContext(t).Done():
		t.Fatal("the older one is still attached")
	}
	for range 3 {
		if answer, err := post(testContext(t), address, "x"); err != nil || answer != "newer got x" {
			t.Errorf("answer %q, %v", answer, err)
		}
	}
}

func TestHoldEnds(t *testing.T) {
	t.Parallel()
	dir, address := serve(t, tetherd.Config{Hold: 50 * time.Millisecond})
	if answer, err := post(testContext(t), address, "x"); err == nil {
		t.Errorf("answer %q", answer)
	}
	until(t, "nothing waits", func() bool { s := status(t, dir); return s.Unattached == 0 && s.Open == 0 })
}

func TestHeldRequestOfAClosedConnectionIsDropped(t *testing.T) {
	t.Parallel()
	dir, address := serve(t, tetherd.Config{})
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx"); err != nil {
		t.Fatal(err)
	}
	until(t, "it waits", func() bool { return status(t, dir).Unattached == 1 })
	_ = conn.Close()
	until(t, "it is given up", func() bool { return status(t, dir).Unattached == 0 })
}

func TestOnlyWaitingConnectionsCountAsOpen(t *testing.T) {
	t.Parallel()
	dir, address := serve(t, tetherd.Config{})
	asked, answer := make(chan struct{}), make(chan struct{})
	attach(t, dir, "slow", func(w http.ResponseWriter, _ *http.Request) {
		close(asked)
		<-answer
		_, _ = io.WriteString(w, "at last")
	})
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-asked
	if s := status(t, dir); s.Open != 1 || s.Unattached != 0 {
		t.Errorf("while it waits: %+v", s)
	}
	close(answer)
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil || string(body) != "at last" {
		t.Fatalf("body %q, %v", body, err)
	}
	// The connection is kept alive, but has no waiting reader.
	until(t, "it counts as idle", func() bool { return status(t, dir).Open == 0 })
}

func TestConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	dir, address := serve(t, tetherd.Config{MaxConnections: 2})
	for range 4 {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	until(t, "two wait", func() bool { return status(t, dir).Unattached == 2 })
	if s := status(t, dir); s.Unattached != 2 {
		t.Errorf("status %+v", s)
	}
}

func TestOneDaemonPerDirectory(t *testing.T) {
	t.Parallel()
	dir, _ := serve(t, tetherd.Config{})
	err := tetherd.Serve(testContext(t), tetherd.Config{Dir: dir, Listen: "127.0.0.1:0"})
	if !errors.Is(err, tetherd.ErrServing) {
		t.Errorf("error %v", err)
	}
}

func TestAttachWithoutADaemonFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := tetherd.Ask(testContext(t), dir); !errors.Is(err, tetherd.ErrNotServing) {
		t.Errorf("status: %v", err)
	}
	if err := tetherd.Attach(testContext(t), dir, strings.NewReader(""), io.Discard); !errors.Is(err, tetherd.ErrNotServing) {
		t.Errorf("attach: %v", err)
	}
}

func TestLongDirectoryAndLeftovers(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), strings.Repeat("long/", 30))
	for range 2 { // the second time there is an old socket
		config := tetherd.Config{Dir: dir, Listen: "127.0.0.1:0"}
		ready := make(chan tetherd.Status, 1)
		config.Ready = func(s tetherd.Status) { ready <- s }
		ended := make(chan error, 1)
		go func() { ended <- tetherd.Serve(context.Background(), config) }()
		<-ready
		if s, err := tetherd.Stop(testContext(t), dir); err != nil || s.Listen == "" {
			t.Errorf("stop: %+v, %v", s, err)
		}
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "control.sock")); err == nil {
		t.Error("the directory is not too long for a socket")
	}
}

func TestNonsenseOnTheControlSocket(t *testing.T) {
	t.Parallel()
	short, err := os.MkdirTemp("/tmp", "tetherd-") // so that the socket is in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(short) })
	dir, _ := serve(t, tetherd.Config{Dir: short})
	for _, nonsense := range []string{"", "\n", "what?\n", strings.Repeat("x", 1000), "attach\nnot yamux at all, by no means"} {
		conn, err := net.Dial("unix", filepath.Join(dir, "control.sock"))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, nonsense)
		_ = conn.(*net.UnixConn).CloseWrite()
		_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%q is still being listened to", nonsense)
		}
		_ = conn.Close()
	}
	until(t, "nobody is attached", func() bool { return !status(t, dir).Attached })
}
