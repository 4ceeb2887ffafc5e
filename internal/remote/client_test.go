package remote_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/errand-bot/errand/internal/remote"
)

func TestDialChecksKeys(t *testing.T) {
	t.Parallel()
	v := newVM(t)
	stranger := newSigner(t)
	tests := map[string]struct {
		pins   []string
		signer bool // ours
		want   error
	}{
		"right":                    {pins: []string{authorized(v.host)}, signer: true},
		"second of two":            {pins: []string{authorized(stranger), authorized(v.host)}, signer: true},
		"wrong host key":           {pins: []string{authorized(stranger)}, signer: true, want: remote.ErrHostKey},
		"no host key":              {signer: true, want: remote.ErrHostKey},
		"wrong client key":         {pins: []string{authorized(v.host)}, want: remote.ErrAuth},
		"host key before auth":     {pins: []string{authorized(stranger)}, want: remote.ErrHostKey},
		"another type of host key": {pins: []string{ecdsaKey(t)}, signer: true, want: remote.ErrHostKey},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ep := v.endpoint()
			ep.HostKeys = test.pins
			cfg := remote.Config{Signer: stranger}
			if test.signer {
				cfg.Signer = v.client
			}
			c, err := remote.Dial(deadline(t), ep, cfg)
			if err == nil {
				_ = c.Close()
			}
			if (err == nil) != (test.want == nil) {
				t.Fatalf("error is %v, want %v", err, test.want)
			}
			if test.want != nil {
				wantErr(t, "Dial", err, test.want)
			}
		})
	}
}

func ecdsaKey(t *testing.T) string {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewPublicKey(&private.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	return string(ssh.MarshalAuthorizedKey(key))
}

func TestDialUnreachable(t *testing.T) {
	t.Parallel()
	v := newVM(t)
	ep := v.endpoint()
	ep.Address += ".none"
	_, err := remote.Dial(deadline(t), ep, remote.Config{Signer: v.client})
	wantErr(t, "nobody listens", err, remote.ErrUnreachable)

	mute, err := net.Listen("unix", v.socket+".mute") // connects, never speaks
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	ep.Address = mute.Addr().String()
	_, err = remote.Dial(deadline(t), ep, remote.Config{Signer: v.client, DialTimeout: 50 * time.Millisecond})
	wantErr(t, "nobody speaks", err, remote.ErrUnreachable)
}

func TestKeepaliveNoticesSilence(t *testing.T) {
	t.Parallel()
	v := newVM(t)
	f := newFreezer(t, v)
	c := dialEndpoint(t, v, f.endpoint(v), remote.Config{KeepaliveEvery: 10 * time.Millisecond, KeepaliveDeadline: 3 * time.Second})
	out, wait, err := c.Stream(deadline(t), remote.Cmd{Argv: []string{"sleep", "60"}})
	if err != nil {
		t.Fatal(err)
	}
	close(f.frozen)
	_, err = io.ReadAll(out)
	wantErr(t, "reading", err, remote.ErrConnectionLost)
	_, err = wait()
	wantErr(t, "waiting", err, remote.ErrConnectionLost)
	wantErr(t, "Err", c.Err(), remote.ErrConnectionLost)
	_, err = c.Run(deadline(t), remote.Cmd{Argv: []string{"true"}})
	wantErr(t, "a command afterwards", err, remote.ErrConnectionLost)
}

func TestKeepaliveKeepsLiveConnections(t *testing.T) {
	t.Parallel()
	c := newVM(t).dial(t, remote.Config{KeepaliveEvery: time.Millisecond, KeepaliveDeadline: 10 * time.Second})
	if _, err := c.Run(deadline(t), remote.Cmd{Argv: []string{"sleep", "0.3"}}); err != nil {
		t.Error(err)
	}
}

func TestCutConnection(t *testing.T) {
	t.Parallel()
	v := newVM(t)
	c := v.dial(t, remote.Config{})
	out, wait, err := c.Stream(deadline(t), remote.Cmd{Argv: []string{"sh", "-c", "echo up; exec sleep 60"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	v.stop()
	_, err = wait()
	wantErr(t, "command", err, remote.ErrConnectionLost)
	ended(t, c)
	if err := c.Close(); err != nil {
		t.Errorf("close after the end: %v", err)
	}
}

func TestCloseIsNotAConnectionLoss(t *testing.T) {
	t.Parallel()
	c := newVM(t).dial(t, remote.Config{})
	for range 2 {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	wantErr(t, "Err after Close", c.Err(), net.ErrClosed)
}

func TestContextEndsDial(t *testing.T) {
	t.Parallel()
	v := newVM(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := remote.Dial(ctx, v.endpoint(), remote.Config{Signer: v.client})
	if err == nil || !strings.Contains(err.Error(), "cancel") {
		t.Errorf("error is %v", err)
	}
}
