package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

const keepaliveRequest = "keepalive@openssh.com"

// Client is one live SSH connection. It is safe for concurrent use; each command has its own channel. Close it when
// done.
type Client struct {
	conn *ssh.Client
	cfg  Config

	done chan struct{}

	mu  sync.Mutex
	err error // why the connection ended; set before done is closed
}

// Dial connects, checks the host key against the pinned ones, authenticates with the deployment's key and starts the
// keepalive. The error matches ErrUnreachable, ErrHostKey or ErrAuth if one of them is the cause. ctx bounds only
// dialing, not the life of the Client.
func Dial(ctx context.Context, ep Endpoint, cfg Config) (*Client, error) {
	cfg = cfg.withDefaults()
	pins, err := parsePins(ep.HostKeys)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", ep.Address, err)
	}
	ctx, cancel := context.WithTimeout(ctx, cfg.DialTimeout)
	defer cancel()
	raw, err := cfg.Dial(ctx, ep.Network, ep.Address)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w: %w", ep.Address, ErrUnreachable, err)
	}
	conn, err := handshake(ctx, raw, ep, cfg, pins)
	if err != nil {
		_ = raw.Close()
		return nil, fmt.Errorf("dial %s: %w", ep.Address, err)
	}
	c := &Client{conn: conn, cfg: cfg, done: make(chan struct{})}
	go c.watch()
	go c.keepalive()
	return c, nil
}

func handshake(ctx context.Context, raw net.Conn, ep Endpoint, cfg Config, pins []ssh.PublicKey) (*ssh.Client, error) {
	stop := context.AfterFunc(ctx, func() { _ = raw.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	var mismatch *HostKeyError
	clientConfig := &ssh.ClientConfig{
		User:              ep.User,
		Auth:              []ssh.AuthMethod{ssh.PublicKeys(cfg.Signer)},
		HostKeyAlgorithms: algorithms(pins),
		HostKeyCallback: func(_ string, _ net.Addr, key ssh.PublicKey) error {
			if err := checkPin(ep.Address, key, pins); err != nil {
				mismatch = err
				return err
			}
			return nil
		},
	}
	conn, chans, reqs, err := ssh.NewClientConn(raw, ep.Address, clientConfig)
	if err == nil && !stop() {
		err = context.Cause(ctx) // the deadline expired at the last moment and has broken the connection
	}
	switch {
	case err == nil:
		return ssh.NewClient(conn, chans, reqs), nil
	case mismatch != nil:
		return nil, mismatch
	case strings.Contains(err.Error(), "unable to authenticate"):
		return nil, fmt.Errorf("%w: %w", ErrAuth, err)
	case strings.Contains(err.Error(), "no common algorithm for host key"):
		return nil, &HostKeyError{Address: ep.Address, Got: "a key of another type", Want: fingerprints(pins)}
	default:
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
}

func checkPin(address string, key ssh.PublicKey, pins []ssh.PublicKey) *HostKeyError {
	got := key.Marshal()
	for _, pin := range pins {
		if bytes.Equal(got, pin.Marshal()) {
			return nil
		}
	}
	return &HostKeyError{Address: address, Got: ssh.FingerprintSHA256(key), Want: fingerprints(pins)}
}

func fingerprints(keys []ssh.PublicKey) []string {
	out := make([]string, len(keys))
	for i, key := range keys {
		out[i] = ssh.FingerprintSHA256(key)
	}
	return out
}

// algorithms makes the VM present a key of a pinned type, if it has one.
func algorithms(pins []ssh.PublicKey) []string {
	var out []string
	for _, pin := range pins {
		if pin.Type() == ssh.KeyAlgoRSA {
			out = append(out, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256)
			continue
		}
		out = append(out, pin.Type())
	}
	return out
}

// Done is closed when the connection has ended for any reason.
func (c *Client) Done() <-chan struct{} { return c.done }

// Err returns why the connection ended, or nil while it lives. After Close it is net.ErrClosed, otherwise it matches
// ErrConnectionLost.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Close ends the connection and every command on it. It may be called twice.
func (c *Client) Close() error {
	c.end(net.ErrClosed)
	<-c.done
	return nil
}

// end records the first cause and closes the transport.
func (c *Client) end(cause error) {
	c.mu.Lock()
	if c.err == nil {
		c.err = cause
	}
	c.mu.Unlock()
	_ = c.conn.Close()
}

// watch returns when the transport ends.
func (c *Client) watch() {
	err := c.conn.Wait()
	if err == nil {
		err = errors.New("closed by the VM")
	}
	c.end(fmt.Errorf("%w: %w", ErrConnectionLost, err))
	close(c.done)
}

// keepalive ends with the connection. One request is in flight at a time; any reply to it, positive or negative, counts
// as activity.
func (c *Client) keepalive() {
	tick := time.NewTicker(c.cfg.KeepaliveEvery)
	defer tick.Stop()
	for {
		select {
		case <-c.done:
			return
		case <-tick.C:
		}
		giveUp := time.AfterFunc(c.cfg.KeepaliveDeadline, func() {
			c.end(fmt.Errorf("%w: no answer to a keepalive for %s", ErrConnectionLost, c.cfg.KeepaliveDeadline))
		})
		_, _, err := c.conn.SendRequest(keepaliveRequest, true, nil)
		giveUp.Stop()
		if err != nil {
			return // the transport is gone and watch reports it
		}
	}
}

// explainTransportError replaces a transport error by the cause for which the connection ended, if it did.
func (c *Client) explainTransportError(err error) error {
	if err == nil {
		return nil
	}
	var missing *ssh.ExitMissingError
	if errors.As(err, &missing) || isTransport(err) {
		// The channel reports the end a moment before the client does.
		select {
		case <-c.done:
		case <-time.After(100 * time.Millisecond):
		}
	}
	if cause := c.Err(); cause != nil {
		return cause
	}
	return err
}

func isTransport(err error) bool {
	return errors.Is(err, net.ErrClosed) || strings.Contains(err.Error(), "EOF")
}
