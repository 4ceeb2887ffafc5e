// Package remote speaks SSH to a VM: run a command, stream its output, attach
// to it as a byte stream, copy a file in or out.
//
// A connection is verified from its first byte: the host keys are pinned by the
// caller and nothing is trusted on first use. A connection that is cut or frozen
// is noticed by a keepalive with a deadline of its own, because TCP and unix
// sockets do not tell. The package knows nothing of where VMs come from; it runs
// against any sshd that accepts one public key and exec requests.
//
// Start reading at Dial, then Client.Run; Pool keeps one live Client per VM.
package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// Errors on which a caller decides. All of them arrive wrapped.
var (
	// ErrUnreachable: nothing answered at the address, or not in time. Trying
	// again later may help.
	ErrUnreachable = errors.New("VM unreachable")
	// ErrHostKey: the VM showed a host key that is not pinned. Never retried.
	ErrHostKey = errors.New("host key not pinned")
	// ErrAuth: the VM refused our client key. Never retried.
	ErrAuth = errors.New("client key refused")
	// ErrConnectionLost: an established connection ended, or did not answer a
	// keepalive in time. What a running command did is unknown.
	ErrConnectionLost = errors.New("connection to VM lost")
	// ErrTooMuchOutput: a command wrote more than Cmd.MaxOutput to its standard
	// output and was ended.
	ErrTooMuchOutput = errors.New("too much output")
)

// Endpoint is where and as what a VM is reached.
type Endpoint struct {
	// Network is "unix" or "tcp".
	Network string `json:"network"`
	// Address is a socket path or host:port.
	Address string `json:"address"`
	// User is the login name.
	User string `json:"user"`
	// HostKeys are the pinned host keys in authorized_keys form. Any one of them
	// is accepted, so that a key can be rotated; none means no connection.
	HostKeys []string `json:"host_keys"`
}

// Config is what is the same for every VM of a deployment. Zero durations mean
// the defaults.
type Config struct {
	// Signer is the client key of this deployment.
	Signer ssh.Signer
	// DialTimeout bounds connecting and the SSH handshake together. Default 10 s.
	DialTimeout time.Duration
	// KeepaliveEvery is the pause between keepalives. Default 5 s.
	KeepaliveEvery time.Duration
	// KeepaliveDeadline is how long the VM may leave keepalives unanswered before
	// the connection is given up. Default 15 s.
	KeepaliveDeadline time.Duration
	// Dial opens the connection beneath SSH; nil dials the endpoint's own network and address.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

func (c Config) withDefaults() Config {
	if c.DialTimeout <= 0 {
		c.DialTimeout = 10 * time.Second
	}
	if c.KeepaliveEvery <= 0 {
		c.KeepaliveEvery = 5 * time.Second
	}
	if c.KeepaliveDeadline <= 0 {
		c.KeepaliveDeadline = 15 * time.Second
	}
	if c.Dial == nil {
		c.Dial = (&net.Dialer{}).DialContext
	}
	return c
}

// HostKeyError is returned, and matches ErrHostKey, when a VM showed a key that
// is not among its pinned ones.
type HostKeyError struct {
	Address string
	// Got is the fingerprint shown; Want are those pinned.
	Got  string
	Want []string
}

func (e *HostKeyError) Error() string {
	return fmt.Sprintf("%v: %s showed %s, pinned are [%s]", ErrHostKey, e.Address, e.Got, strings.Join(e.Want, " "))
}

// Is makes errors.Is(err, ErrHostKey) true.
func (e *HostKeyError) Is(target error) bool { return target == ErrHostKey }

// Hint says what a person can do about it.
func (e *HostKeyError) Hint() string {
	return "Another VM may answer at this address, or somebody reads along. Do not connect by hand; retry from a new VM (`retry fresh`)."
}

func parsePins(lines []string) ([]ssh.PublicKey, error) {
	if len(lines) == 0 {
		return nil, fmt.Errorf("%w: no host key is pinned", ErrHostKey)
	}
	keys := make([]ssh.PublicKey, 0, len(lines))
	for _, line := range lines {
		key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
		if err != nil {
			return nil, fmt.Errorf("parse pinned host key %q: %w", line, err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}
