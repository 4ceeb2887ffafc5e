package box

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/gliderlabs/ssh"
	gossh "golang.org/x/crypto/ssh"
)

// File descriptors that the supervisor hands to the inside.
const (
	listenerFD = 3
	lifeFD     = 4
)

// Bytes on the life socket, from the inside to the supervisor.
const (
	beatReady   = 'r' // the SSH server serves
	beatContact = 'c' // somebody is connected
)

// insideConfig reaches the inside over standard input, so that the host key is
// neither in a file that the box can see nor in an argument.
type insideConfig struct {
	HostKey string `json:"host_key"` // private, PEM
	// HostKeyFile, if set, is read for each login instead, so that the key can be replaced.
	HostKeyFile string   `json:"host_key_file,omitempty"`
	ClientKey   string   `json:"client_key"`
	Home        string   `json:"home"`
	Env         []string `json:"env"`
	// Closed keeps everybody else in the box from the server's memory, which holds the key.
	Closed bool `json:"closed,omitempty"`
	// Processes bounds those that commands may start; 0 is no bound.
	Processes int           `json:"processes,omitempty"`
	BeatEvery time.Duration `json:"beat_every"`
}

// ServeSSH is the subcommand box-ssh: the SSH server of one box. It takes its
// configuration from standard input, serves the listener that it inherited, and
// returns when ctx ends or the supervisor is gone. With -init it is the box's
// first process instead: it prepares the namespaces, runs the server as its
// child, reaps what the box leaves behind, and ends everything with it. With
// -probe it checks from the inside that the box is what it should be.
func ServeSSH(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("box-ssh", flag.ContinueOnError)
	var o initOptions
	flags.StringVar(&o.kind, "init", "", "be the first process of a box of this `kind`")
	flags.StringVar(&o.probe, "probe", "", "check this `kind` of box from the inside")
	flags.StringVar(&o.dir, "dir", "", "the box's `directory`, for a first process that puts up a view")
	flags.IntVar(&o.as, "as", 0, "the user and group `id` of the box's processes on the host, if it is not the caller's own")
	flags.StringVar(&o.view, "view", "", "what the box sees, as `JSON`")
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch {
	case o.kind != "":
		return runInit(o)
	case o.probe != "":
		return probeInside(ctx, o.probe, os.Stdin, os.Stdout)
	}
	return serveInherited(ctx)
}

// initOptions tell the box's first process what it has to put up. The view holds paths only.
type initOptions struct {
	kind, probe, dir, view string
	as                     int
}

func serveInherited(ctx context.Context) error {
	var cfg insideConfig
	if err := json.NewDecoder(io.LimitReader(os.Stdin, 1<<20)).Decode(&cfg); err != nil {
		return fmt.Errorf("read configuration: %w", err)
	}
	if cfg.Closed {
		if err := closeMemory(); err != nil {
			return fmt.Errorf("close the server's memory to others: %w", err)
		}
	}
	ln, err := inheritedListener()
	if err != nil {
		return err
	}
	life, err := inheritedConn(lifeFD)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	srv, err := newServer(cfg)
	if err != nil {
		return err
	}
	go func() { // the supervisor never writes: this ends when it does
		_, _ = io.Copy(io.Discard, life)
		cancel()
	}()
	var open atomic.Int64
	count := func(_ ssh.Context, conn net.Conn) net.Conn {
		open.Add(1)
		return &countedConn{Conn: conn, open: &open}
	}
	srv.ConnCallback = count
	go beat(ctx, life, &open, cfg.BeatEvery)
	if cfg.HostKeyFile != "" {
		return serveEach(ctx, ln, cfg, count)
	}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer stop()
	if err := srv.Serve(ln); !errors.Is(err, ssh.ErrServerClosed) {
		return fmt.Errorf("serve SSH: %w", err)
	}
	return nil
}

// serveEach gives each login the host key of its moment. Logins go on with the key that they began with.
func serveEach(ctx context.Context, ln net.Listener, cfg insideConfig, count ssh.ConnCallback) error {
	stop := context.AfterFunc(ctx, func() { _ = ln.Close() })
	defer stop()
	for {
		conn, err := ln.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("serve SSH: %w", err)
		}
		cfg := cfg
		if key, err := os.ReadFile(cfg.HostKeyFile); err == nil {
			cfg.HostKey = string(key)
		}
		srv, err := newServer(cfg)
		if err != nil {
			_ = conn.Close() // somebody spoiled the key: nobody can log in, as anywhere
			continue
		}
		srv.ConnCallback = count
		go srv.HandleConn(conn)
	}
}

// beat tells the supervisor that we serve, and then whenever somebody is connected.
func beat(ctx context.Context, life io.Writer, open *atomic.Int64, every time.Duration) {
	_, _ = life.Write([]byte{beatReady})
	tick := time.NewTicker(max(every, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if open.Load() > 0 {
				_, _ = life.Write([]byte{beatContact})
			}
		}
	}
}

// countedConn counts itself out when it is closed for the first time.
type countedConn struct {
	net.Conn
	open   *atomic.Int64
	closed atomic.Bool
}

func (c *countedConn) Close() error {
	if c.closed.CompareAndSwap(false, true) {
		c.open.Add(-1)
	}
	return c.Conn.Close()
}

// newServer accepts one client key and runs commands as our own user. There is no
// terminal and no forwarding: the tether needs neither.
func newServer(cfg insideConfig) (*ssh.Server, error) {
	hostKey, err := gossh.ParsePrivateKey([]byte(cfg.HostKey))
	if err != nil {
		return nil, fmt.Errorf("parse host key: %w", err)
	}
	client, _, _, _, err := gossh.ParseAuthorizedKey([]byte(cfg.ClientKey))
	if err != nil {
		return nil, fmt.Errorf("parse client key: %w", err)
	}
	return &ssh.Server{
		HostSigners:      []ssh.Signer{hostKey},
		Handler:          func(s ssh.Session) { runSession(s, cfg) },
		ChannelHandlers:  map[string]ssh.ChannelHandler{"session": handleSession},
		PublicKeyHandler: func(_ ssh.Context, key ssh.PublicKey) bool { return ssh.KeysEqual(key, client) },
		PtyCallback:      func(ssh.Context, ssh.Pty) bool { return false },
	}, nil
}

func inheritedListener() (net.Listener, error) {
	f := inheritedFile(listenerFD, "listener")
	defer f.Close()
	ln, err := net.FileListener(f)
	if err != nil {
		return nil, fmt.Errorf("take over the listener: %w", err)
	}
	return ln, nil
}

func inheritedConn(fd uintptr) (net.Conn, error) {
	f := inheritedFile(fd, "life")
	defer f.Close()
	conn, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("take over the life socket: %w", err)
	}
	return conn, nil
}
