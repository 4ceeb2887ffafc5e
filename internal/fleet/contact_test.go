package fleet_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	gssh "github.com/gliderlabs/ssh"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/remote"
	"github.com/errand-bot/errand/state/vm"
)

// greeter is a VM's sshd with the tool that changes its host key. After the key is activated it refuses a number of
// connections, like a restarting sshd.
type greeter struct {
	t           *testing.T
	first, next ssh.Signer
	refuses     int
	code        int // exit code of make, if it must fail

	mu        sync.Mutex
	used      int
	greetings int
	dials     int

	synced []string // logins that synced
}

func newGreeter(t *testing.T, refuses int) *greeter {
	t.Helper()
	g := &greeter{t: t, refuses: refuses}
	for _, s := range []*ssh.Signer{&g.first, &g.next} {
		_, private, err := ed25519.GenerateKey(rand.Reader)
		if err == nil {
			*s, err = ssh.NewSignerFromKey(private)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return g
}

func line(s ssh.Signer) string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(s.PublicKey())))
}

func (g *greeter) dial(context.Context, string, string) (net.Conn, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.dials++
	if g.greetings > 0 {
		g.greetings--
		return nil, fmt.Errorf("dial: %w", syscall.ECONNREFUSED)
	}
	key := g.first
	if g.used > 0 {
		key = g.next
	}
	srv := &gssh.Server{Handler: g.serve, PublicKeyHandler: func(gssh.Context, gssh.PublicKey) bool { return true }}
	srv.AddHostKey(key)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go func() { _ = srv.Serve(ln) }() // ends with the test
	g.t.Cleanup(func() { _ = srv.Close() })
	return net.Dial("tcp", ln.Addr().String())
}

func (g *greeter) serve(s gssh.Session) {
	switch words := s.Command(); words[len(words)-1] {
	case "sync":
		g.mu.Lock()
		defer g.mu.Unlock()
		g.synced = append(g.synced, s.User())
		_ = s.Exit(g.code)
	case "make":
		if g.code != 0 {
			fmt.Fprintln(s.Stderr(), "apt-get: no such package")
			_ = s.Exit(g.code)
			return
		}
		fmt.Fprintln(s, line(g.next))
	case "use":
		g.mu.Lock()
		g.used++
		g.greetings = g.refuses
		g.mu.Unlock()
	}
}

// TestGreetWaitsForTheNewKey: sshd is restarted once, however long it takes.
func TestGreetWaitsForTheNewKey(t *testing.T) {
	t.Parallel()
	g := newGreeter(t, 3)
	contact := fleet.SSHContact{SSH: remote.Config{Signer: g.first, Dial: g.dial}, Key: func(string) (string, error) { return line(g.first), nil }}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var stored [][]string
	pins, err := contact.Greet(ctx, vm.Row{Name: "vm"}, remote.Endpoint{Network: "tcp", Address: "vm:22", User: "errand", HostKeys: []string{line(g.first)}},
		func(_ context.Context, pins []string) error {
			g.mu.Lock()
			defer g.mu.Unlock()
			if g.used > 0 {
				t.Error("the pins were stored after the key was used")
			}
			stored = append(stored, pins)
			return nil
		})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{line(g.next)}, pins); diff != "" {
		t.Errorf("pins (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([][]string{{line(g.first), line(g.next)}}, stored); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	if g.used != 1 || g.dials != 3+3 {
		t.Errorf("got %d reloads of sshd and %d dials", g.used, g.dials)
	}
}

// TestGreetEnds: if the VM never responds, Greet ends with its context.
func TestGreetEnds(t *testing.T) {
	t.Parallel()
	g := newGreeter(t, 1<<30)
	contact := fleet.SSHContact{SSH: remote.Config{Signer: g.first, Dial: g.dial}, Key: func(string) (string, error) { return line(g.first), nil }}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := contact.Greet(ctx, vm.Row{Name: "vm"}, remote.Endpoint{Network: "tcp", Address: "vm:22", User: "errand", HostKeys: []string{line(g.first)}},
		func(context.Context, []string) error { return nil })
	if !errors.Is(err, remote.ErrUnreachable) {
		t.Errorf("got error %v at the end", err)
	}
}

// TestGreetReportsTheFirstBoot: an unfinished and a failed first boot are distinguished, with the VM's message.
func TestGreetReportsTheFirstBoot(t *testing.T) {
	t.Parallel()
	for code, want := range map[int]error{75: fleet.ErrSettingUp, 70: fleet.ErrSetUp} {
		g := newGreeter(t, 0)
		g.code = code
		contact := fleet.SSHContact{SSH: remote.Config{Signer: g.first, Dial: g.dial}, Key: func(string) (string, error) { return line(g.first), nil }}
		_, err := contact.Greet(t.Context(), vm.Row{Name: "vm"}, remote.Endpoint{Network: "tcp", Address: "vm:22", User: "errand", HostKeys: []string{line(g.first)}},
			func(context.Context, []string) error { return nil })
		if !errors.Is(err, want) || !strings.Contains(err.Error(), "no such package") {
			t.Errorf("got exit code %d, error %v", code, err)
		}
	}
}

// TestSSHSync: a VM is synced as root, with the host key in its row, and failures are returned.
func TestSSHSync(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		code    int
		another bool // its host key is not the row's
		root    string
		want    []string
		fails   bool
	}{
		"it obeys":         {want: []string{"root"}},
		"of another login": {root: "admin", want: []string{"admin"}},
		"it cannot":        {code: 1, want: []string{"root"}, fails: true},
		"another VM":       {another: true, fails: true},
	}
	for what, test := range tests {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			g := newGreeter(t, 0)
			g.code = test.code
			key := line(g.first)
			if test.another {
				key = line(g.next)
			}
			contact := fleet.SSHContact{SSH: remote.Config{Signer: g.first, Dial: g.dial}, Root: test.root}
			err := contact.Sync(t.Context(), remote.Endpoint{Network: "tcp", Address: "vm:22", User: "errand", HostKeys: []string{key}})
			if (err != nil) != test.fails {
				t.Errorf("got error %v", err)
			}
			g.mu.Lock()
			defer g.mu.Unlock()
			if diff := cmp.Diff(test.want, g.synced); diff != "" {
				t.Errorf("synced by (-want +got):\n%s", diff)
			}
		})
	}
}
