package local_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/fleet/local"
	"github.com/errand-bot/errand/internal/remote"
)

// plainBox returns a box whose files are visible to the test.
func plainBox(t *testing.T) (vm fleet.VM, c *remote.Client, signer ssh.Signer) {
	t.Helper()
	p, signer := newProvider(t, local.KindPlain, nil)
	vm = create(t, p, "one")
	return vm, dial(t, vm, signer), signer
}

func TestSessionEnds(t *testing.T) {
	t.Parallel()
	_, c, _ := plainBox(t)
	tests := map[string]struct {
		line   string
		code   int
		signal string
	}{
		"status":                    {line: "exit 9", code: 9},
		"signal":                    {line: "kill -TERM $$", code: 143, signal: "TERM"},
		"not found":                 {line: "exec no-such-program 2>/dev/null", code: 127},
		"input not read":            {line: "exit 0"},
		"output after a background": {line: "(sleep 0.1; echo late) & exit 0"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res, err := c.Run(t.Context(), remote.Cmd{Argv: []string{"sh", "-c", test.line}, Stdin: strings.NewReader("in")})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]any{test.code, test.signal}, []any{res.Code, res.Signal}); diff != "" {
				t.Errorf("end (-want +got):\n%s", diff)
			}
			if strings.Contains(test.line, "late") && string(res.Stdout) != "late\n" {
				t.Errorf("got output %q", res.Stdout)
			}
		})
	}
}

// TestChannelCloseEndsTheGroup covers a case in which sshd leaves processes: a silent command whose client closed the
// channel, but not the connection.
func TestChannelCloseEndsTheGroup(t *testing.T) {
	t.Parallel()
	vm, c, signer := plainBox(t)
	mark := "errand-mark-group-" + filepath.Base(filepath.Dir(vm.Facts[fleet.FactLog])) + t.Name() + time.Now().Format("150405.000000")
	line := "trap '' TERM HUP; sh -c 'while :; do sleep 1; done' " + mark + " & setsid sh -c 'while :; do sleep 1; done' " + mark +
		"-apart </dev/null >/dev/null 2>&1 & echo up; wait"
	out, wait, err := c.Stream(t.Context(), remote.Cmd{Argv: []string{"sh", "-c", line}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "both run", func() bool { return processes(t, mark+"\x00") > 0 && processes(t, mark+"-apart\x00") > 0 })
	_ = out.Close()
	_, _ = wait()
	eventually(t, "the group ends", func() bool { return processes(t, mark+"\x00") == 0 })
	if processes(t, mark+"-apart\x00") == 0 {
		t.Error("a process that had left the group was ended, too")
	}
	if got := run(t, dial(t, vm, signer), "echo up"); got != "up" {
		t.Errorf("got output %q from the sandbox", got)
	}
}

func TestCancelReachesTheCommand(t *testing.T) {
	t.Parallel()
	vm, c, _ := plainBox(t)
	ctx, cancel := context.WithCancel(t.Context())
	out, wait, err := c.Stream(ctx, remote.Cmd{Argv: []string{"sh", "-c", "trap 'echo term > end; exit' TERM; echo up; while :; do sleep 0.01; done"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := wait(); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v from Wait", err)
	}
	end := filepath.Join(vm.Facts[fleet.FactHome], "end")
	eventually(t, "the signal arrives", func() bool {
		data, _ := os.ReadFile(end)
		return string(data) == "term\n"
	})
}

func TestManyBytesBothWays(t *testing.T) {
	t.Parallel()
	_, c, _ := plainBox(t)
	want := bytes.Repeat([]byte("0123456789abcde\n"), 1<<18) // 4 MiB
	res, err := c.Run(t.Context(), remote.Cmd{Argv: []string{"cat"}, Stdin: bytes.NewReader(want), MaxOutput: len(want)})
	if err != nil || !bytes.Equal(res.Stdout, want) {
		t.Errorf("got %d of %d bytes back, error %v", len(res.Stdout), len(want), err)
	}
	if err := c.Copy(t.Context(), bytes.NewReader(want), int64(len(want)), "dir/file", 0o644); err != nil {
		t.Fatal(err)
	}
	r, err := c.Get(t.Context(), "dir/file")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, want) {
		t.Errorf("got %d of %d bytes back, error %v", len(got), len(want), err)
	}
}

// TestServerRefuses: requests beyond those that errand needs are refused.
func TestServerRefuses(t *testing.T) {
	t.Parallel()
	vm, _, signer := plainBox(t)
	raw, err := net.Dial("unix", vm.Endpoint.Address)
	if err != nil {
		t.Fatal(err)
	}
	conn, chans, reqs, err := ssh.NewClientConn(raw, "", &ssh.ClientConfig{
		User: "agent", Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyCallback: ssh.InsecureIgnoreHostKey(),
	})
	if err != nil {
		t.Fatal(err)
	}
	client := ssh.NewClient(conn, chans, reqs)
	defer client.Close()
	if _, err := client.Dial("tcp", "127.0.0.1:1"); err == nil || !strings.Contains(err.Error(), "unsupported channel") {
		t.Errorf("forwarding: %v", err)
	}
	if ln, err := client.Listen("tcp", "127.0.0.1:0"); err == nil {
		_ = ln.Close()
		t.Error("reverse forwarding is allowed")
	}
	sess, err := client.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	if err := sess.RequestPty("xterm", 24, 80, nil); err == nil {
		t.Error("got a terminal, want none")
	}
	if err := sess.Setenv("GREETING", "hi"); err != nil {
		t.Error(err)
	}
	if out, err := sess.Output("echo $GREETING"); err != nil || string(out) != "hi\n" {
		t.Errorf("got environment %q, error %v", out, err)
	}
}

func TestManyClients(t *testing.T) {
	t.Parallel()
	vm, _, signer := plainBox(t)
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			c, err := remote.Dial(t.Context(), vm.Endpoint, remote.Config{Signer: signer})
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			if res, err := c.Run(t.Context(), remote.Cmd{Argv: []string{"echo", "hi"}}); err != nil || string(res.Stdout) != "hi\n" {
				t.Errorf("%q, %v", res.Stdout, err)
			}
		})
	}
	wg.Wait()
}
