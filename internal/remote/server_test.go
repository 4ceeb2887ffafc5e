package remote_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	gliderssh "github.com/gliderlabs/ssh"
	"golang.org/x/crypto/ssh"

	"github.com/errand-bot/errand/internal/remote"
)

func newSigner(t *testing.T) ssh.Signer {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

func authorized(s ssh.Signer) string { return string(ssh.MarshalAuthorizedKey(s.PublicKey())) }

// vm is an SSH server in this process that runs commands in a directory.
type vm struct {
	home   string
	host   ssh.Signer
	client ssh.Signer
	socket string

	mu    sync.Mutex
	ln    net.Listener
	conns []net.Conn
}

func newVM(t *testing.T) *vm {
	t.Helper()
	dir, err := os.MkdirTemp("", "vm") // t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	v := &vm{home: t.TempDir(), host: newSigner(t), client: newSigner(t), socket: filepath.Join(dir, "s")}
	v.start(t)
	t.Cleanup(func() {
		v.stop()
		_ = os.RemoveAll(dir)
	})
	return v
}

func (v *vm) start(t *testing.T) {
	t.Helper()
	_ = os.Remove(v.socket)
	ln, err := net.Listen("unix", v.socket)
	if err != nil {
		t.Fatal(err)
	}
	srv := &gliderssh.Server{
		HostSigners:  []gliderssh.Signer{v.host},
		Handler:      v.handle,
		ConnCallback: v.connected,
		PublicKeyHandler: func(_ gliderssh.Context, key gliderssh.PublicKey) bool {
			return gliderssh.KeysEqual(key, v.client.PublicKey())
		},
	}
	v.mu.Lock()
	v.ln = ln
	v.mu.Unlock()
	go func() { _ = srv.Serve(ln) }()
}

// stop cuts every connection.
func (v *vm) stop() {
	v.mu.Lock()
	defer v.mu.Unlock()
	_ = v.ln.Close()
	for _, conn := range v.conns {
		_ = conn.Close()
	}
	v.conns = nil
}

func (v *vm) connected(_ gliderssh.Context, conn net.Conn) net.Conn {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.conns = append(v.conns, conn)
	return conn
}

func (v *vm) handle(s gliderssh.Session) {
	cmd := exec.Command("/bin/sh", "-c", s.RawCommand())
	cmd.Dir, cmd.Stdout, cmd.Stderr = v.home, s, s.Stderr()
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + v.home}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	stdin, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		_ = s.Exit(126)
		return
	}
	go func() {
		_, _ = io.Copy(stdin, s)
		_ = stdin.Close()
	}()
	signals := make(chan gliderssh.Signal, 128)
	s.Signals(signals)
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-signals:
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		case <-s.Context().Done():
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		case <-done:
		}
	}()
	var exit *exec.ExitError
	err = cmd.Wait()
	if errors.As(err, &exit) {
		if status := exit.Sys().(syscall.WaitStatus); status.Signaled() && status.Signal() == syscall.SIGKILL {
			payload := struct {
				Signal     string
				CoreDumped bool
				Message    string
				Language   string
			}{Signal: "KILL"}
			_, _ = s.SendRequest("exit-signal", false, ssh.Marshal(&payload))
			_ = s.Close()
			return
		}
		_ = s.Exit(exit.ExitCode() & 0xff)
	}
}

func (v *vm) endpoint() remote.Endpoint {
	return remote.Endpoint{Network: "unix", Address: v.socket, User: "agent", HostKeys: []string{authorized(v.host)}}
}

func (v *vm) dial(t *testing.T, cfg remote.Config) *remote.Client {
	t.Helper()
	return dialEndpoint(t, v, v.endpoint(), cfg)
}

func dialEndpoint(t *testing.T, v *vm, ep remote.Endpoint, cfg remote.Config) *remote.Client {
	t.Helper()
	cfg.Signer = v.client
	c, err := remote.Dial(deadline(t), ep, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func wantErr(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: error is %v, want %v", what, err, want)
	}
}

// freezer is between client and VM and can stop forwarding bytes, as a frozen VM or a cut network does, without
// notifying either side.
type freezer struct {
	socket string
	frozen chan struct{}
}

func newFreezer(t *testing.T, v *vm) *freezer {
	t.Helper()
	f := &freezer{socket: v.socket + ".f", frozen: make(chan struct{})}
	ln, err := net.Listen("unix", f.socket)
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
			t.Cleanup(func() { _ = conn.Close() })
			to, err := net.Dial("unix", v.socket)
			if err != nil {
				_ = conn.Close()
				continue
			}
			t.Cleanup(func() { _ = to.Close() })
			go f.pass(to, conn)
			go f.pass(conn, to)
		}
	}()
	return f
}

func (f *freezer) pass(w io.Writer, r io.Reader) {
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		select {
		case <-f.frozen:
			return
		default:
		}
		if err != nil {
			return
		}
		if _, err := w.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (f *freezer) endpoint(v *vm) remote.Endpoint {
	ep := v.endpoint()
	ep.Address = f.socket
	return ep
}

func ended(t *testing.T, c *remote.Client) {
	t.Helper()
	select {
	case <-c.Done():
	case <-deadline(t).Done():
		t.Fatal("the connection does not end")
	}
}
