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

// File descriptors that the supervisor passes to the inside.
const (
	listenerFD = 3
	lifeFD     = 4
)

// Bytes on the life socket, from the inside to the supervisor.
const (
	beatReady   = 'r' // the SSH server serves
	beatContact = 'c' // a client is connected
)

// insideConfig is passed to the inside over standard input, so that the host key is neither in a file visible in the
// sandbox nor in an argument.
type insideConfig struct {
	HostKey string `json:"host_key"` // private, PEM
	// HostKeyFile, if set, is read at each login instead, so that the key can be replaced.
	HostKeyFile string   `json:"host_key_file,omitempty"`
	ClientKey   string   `json:"client_key"`
	Home        string   `json:"home"`
	Env         []string `json:"env"`
	// Closed protects the server's memory, which contains the key, from all other processes in the sandbox.
	Closed bool `json:"closed,omitempty"`
	// Processes limits the processes of commands; 0 means no limit.
	Processes int           `json:"processes,omitempty"`
	BeatEvery time.Duration `json:"beat_every"`
}

// ServeSSH is the subcommand box-ssh: the SSH server of one sandbox. It reads its configuration from standard input,
// serves the inherited listener, and returns when ctx or the supervisor ends. With -init it is the sandbox's first
// process instead: it prepares the namespaces, runs the server as its child, reaps orphans, and ends everything with
// the server. With -probe it checks the isolation from inside.
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

// initOptions tell the sandbox's first process how to set up the sandbox. The view contains paths only.
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
	go func() { // the supervisor never writes: the read ends when it exits
		_, _ = io.Copy(io.Discard, life)
		cancel()
	}()
	var open atomic.Int64
	count := func(_ ssh.Context, conn net.Conn) net.Conn {
		open.Add(1)
		return &countedConn{Conn: conn, open: &open}
	}
	srv.ConnCallback = count
	go reportHeartbeats(ctx, life, &open, cfg.BeatEvery)
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

// serveEach uses the current host key for each login. Connections keep the key that they started with.
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
			_ = conn.Close() // the key was damaged: nobody can log in, as on any host
			continue
		}
		srv.ConnCallback = count
		go srv.HandleConn(conn)
	}
}

// reportHeartbeats reports to the supervisor that the server is ready, and then periodically whether clients are
// connected.
func reportHeartbeats(ctx context.Context, life io.Writer, open *atomic.Int64, every time.Duration) {
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

// countedConn decrements the counter when it is first closed.
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

// newServer accepts one client key and runs commands as the current user. It supports neither terminals nor forwarding,
// which the tether does not need.
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
