// Package remote is an SSH client for VMs: it runs commands, streams their output, attaches to them as a byte stream,
// and copies files in both directions.
//
// The caller pins the host keys; there is no trust on first use. A keepalive with its own deadline detects a cut or
// frozen connection, which TCP and unix sockets do not report. The package is independent of VM providers; it works
// with any sshd that accepts one public key and exec requests.
//
// Start here: [Dial], then [Client.Run]; [Pool] keeps one live Client per VM.
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

// Errors for callers to distinguish. All of them are returned wrapped.
var (
	// ErrUnreachable: nothing answered at the address, or not in time. A later retry may help.
	ErrUnreachable = errors.New("VM unreachable")
	// ErrHostKey: the VM presented a host key that is not pinned. Never retried.
	ErrHostKey = errors.New("host key not pinned")
	// ErrAuth: the VM refused the client key. Never retried.
	ErrAuth = errors.New("client key refused")
	// ErrConnectionLost: an established connection ended, or did not answer a keepalive in time. The outcome of a
	// running command is unknown.
	ErrConnectionLost = errors.New("connection to VM lost")
	// ErrTooMuchOutput: a command wrote more than Cmd.MaxOutput to its standard output and was ended.
	ErrTooMuchOutput = errors.New("too much output")
)

// Endpoint is the address and login of a VM.
type Endpoint struct {
	// Network is "unix" or "tcp".
	Network string `json:"network"`
	// Address is a socket path or host:port.
	Address string `json:"address"`
	// User is the login name.
	User string `json:"user"`
	// HostKeys are the pinned host keys in authorized_keys form. Any one of them is accepted, so that a key can be
	// rotated; without keys, connecting fails.
	HostKeys []string `json:"host_keys"`
}

// Config is the configuration for all VMs of a deployment. Zero durations mean the defaults.
type Config struct {
	// Signer is the client key of this deployment.
	Signer ssh.Signer
	// DialTimeout bounds connecting and the SSH handshake together. Default 10 s.
	DialTimeout time.Duration
	// KeepaliveEvery is the interval of keepalives. Default 5 s.
	KeepaliveEvery time.Duration
	// KeepaliveDeadline is the time without an answer to a keepalive after which the connection is closed. Default 15
	// s.
	KeepaliveDeadline time.Duration
	// Dial opens the connection below SSH; nil dials the endpoint's network and address.
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

// HostKeyError reports a host key that is not pinned. It matches ErrHostKey.
type HostKeyError struct {
	Address string
	// Got is the fingerprint of the presented key; Want are the pinned ones.
	Got  string
	Want []string
}

func (e *HostKeyError) Error() string {
	return fmt.Sprintf("%v: %s showed %s, pinned are [%s]", ErrHostKey, e.Address, e.Got, strings.Join(e.Want, " "))
}

// Is reports whether target is ErrHostKey.
func (e *HostKeyError) Is(target error) bool { return target == ErrHostKey }

// Hint returns an instruction for people.
func (e *HostKeyError) Hint() string {
	return "Another VM may answer at this address, or the connection may be intercepted. Do not connect by hand; retry from a new VM (`retry fresh`)."
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
