package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/handlers"
	"github.com/errand-bot/errand/internal/cli"
	"github.com/errand-bot/errand/state/kv/boltkv"
	"github.com/errand-bot/errand/state/store"
)

// inherits makes a command inherit sockets as systemd passes them.
func inherits(t *testing.T, cmd *exec.Cmd, sockets ...*os.File) {
	t.Helper()
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("skipped: sh is not installed, which sets the process ID that systemd would pass")
	}
	cmd.Args = append([]string{"sh", "-c", `export LISTEN_PID=$$; exec "$0" "$@"`, cmd.Path}, cmd.Args[1:]...)
	cmd.Path, cmd.ExtraFiles = shell, sockets
	cmd.Env = append(cmd.Env, fmt.Sprintf("LISTEN_FDS=%d", len(sockets)))
}

// TestRestartLosesNoWebhook: with a socket of the service manager, every webhook that is sent while errand restarts is answered within
// GitHub's time limit, and is stored.
func TestRestartLosesNoWebhook(t *testing.T) {
	t.Parallel()
	bin, dir := build(t), t.TempDir()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	socket, err := ln.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = ln.Close(), socket.Close() })
	restart := func() *process {
		cmd := command(t, bin, ln.Addr().String(), dir)
		inherits(t, cmd, socket)
		return begin(t, cmd)
	}
	p := restart()
	stop, answered, ended := make(chan struct{}), make(chan struct{}, 1), make(chan []error, 1)
	var sent int // valid after ended
	go func() {
		var errs []error
		defer func() { ended <- errs }()
		for ; sent < 100_000; sent++ {
			if err := sendWebhook("http://"+ln.Addr().String()+handlers.HookPath, guidOf(sent)); err != nil {
				errs = append(errs, err)
			}
			select {
			case answered <- struct{}{}:
			case <-stop:
				return
			default:
			}
		}
	}()
	for range 3 {
		for range 5 {
			<-answered
		}
		p.stop(t)
		p = restart()
	}
	close(stop)
	if err := errors.Join(<-ended...); err != nil {
		t.Error(err)
	}
	p.stop(t)
	db, err := boltkv.Open(filepath.Join(dir, "data", "errand.db"), boltkv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	s, err := store.Open(t.Context(), db, store.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	for i := range sent {
		if known, err := s.HasDelivery(t.Context(), guidOf(i)); !known || err != nil {
			t.Errorf("webhook %d is not stored (error %v)", i, err)
		}
	}
}

func guidOf(i int) string { return fmt.Sprintf("7e1c1b5e-0000-4000-8000-%012d", i) }

// sendWebhook sends a webhook over a new connection, with GitHub's time limit.
func sendWebhook(address, guid string) error {
	return sendWebhookBy(&http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}, address, guid)
}

func sendWebhookBy(client *http.Client, address, guid string) error {
	body := []byte(`{"action":"opened"}`)
	mac := hmac.New(sha256.New, []byte("hook-secret-for-tests"))
	mac.Write(body)
	r, err := http.NewRequest(http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return err
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "X-GitHub-Event": "issues", "X-GitHub-Delivery": guid, "X-Hub-Signature-256": "sha256=" + hex.EncodeToString(mac.Sum(nil)),
	} {
		r.Header.Set(name, value)
	}
	resp, err := client.Do(r)
	if err != nil {
		return fmt.Errorf("webhook %s: %w", guid, err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("webhook %s was answered with %s", guid, resp.Status)
	}
	return nil
}

// TestUnusableSockets: errand reports why it cannot use the sockets that it inherits.
func TestUnusableSockets(t *testing.T) {
	t.Parallel()
	bin := build(t)
	tcp := func(t *testing.T) *os.File {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = ln.Close() })
		f, err := ln.(*net.TCPListener).File()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	for name, tt := range map[string]struct {
		sockets func(t *testing.T) []*os.File
		want    string
	}{
		"two": {func(t *testing.T) []*os.File { return []*os.File{tcp(t), tcp(t)} }, "2 sockets, want one"},
		"of a local socket": {func(t *testing.T) []*os.File {
			ln, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = ln.Close() })
			f, err := ln.(*net.UnixListener).File()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = f.Close() })
			return []*os.File{f}
		}, "a socket of unix, want TCP"},
		"a file": {func(t *testing.T) []*os.File {
			f, err := os.Create(filepath.Join(t.TempDir(), "file"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = f.Close() })
			return []*os.File{f}
		}, "use the socket of the service manager"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := command(t, bin, "127.0.0.1:0", t.TempDir())
			inherits(t, cmd, tt.sockets(t)...)
			out, err := cmd.CombinedOutput()
			if cmd.ProcessState.ExitCode() != cli.ExitFailed || !strings.Contains(string(out), tt.want) {
				t.Errorf("got %v and %q, want %q", err, out, tt.want)
			}
		})
	}
}

func TestListensAt(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		socket  net.TCPAddr
		address string
		want    bool
	}{
		{net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080}, "127.0.0.1:8080", true},
		{net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080}, "localhost:8080", true},
		{net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080}, ":8080", true},
		{net.TCPAddr{IP: net.IPv6unspecified, Port: 8080}, "127.0.0.1:8080", true},
		{net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080}, "127.0.0.1:8081", false},
		{net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 8080}, "127.0.0.1:8080", false},
		{net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080}, "errand", false},
	} {
		if got := listensAt(addressed{addr: &tt.socket}, tt.address); got != tt.want {
			t.Errorf("%s, %s: got %t", &tt.socket, tt.address, got)
		}
	}
}

// addressed is a listener with an address.
type addressed struct {
	net.Listener
	addr net.Addr
}

func (a addressed) Addr() net.Addr { return a.addr }
