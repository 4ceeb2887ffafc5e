package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime/pprof"
	"time"

	"github.com/palantir/go-githubapp/githubapp"
	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/handlers"
	"github.com/errand-bot/errand/state/kv/boltkv"
	"github.com/errand-bot/errand/state/store"
)

// The ways in which hookServer treats webhooks.
const (
	thrownAway = "thrown-away" // by go-githubapp's dispatcher, with a handler that does nothing
	durable    = "durable"     // as errand does: stored before they are answered
)

// profileDir names the variable with the folder for CPU profiles of hookServer. If it is not set there are none.
const profileDir = "ERRAND_BENCH_PROFILE"

// hookServer is the server process of the webhook benchmark. It prints its address and serves until its input ends. The
// store is in dir; only the durable mode has one.
func hookServer(mode, dir string) (err error) {
	front, closeStore, err := webhookFront(mode, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeStore()) }()
	stopProfile, err := startProfile(mode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopProfile()) }()
	var lc net.ListenConfig
	ln, err := lc.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	// The limits are those of errand's own server.
	srv := &http.Server{Handler: front, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 32 << 10}
	go func() { _ = srv.Serve(ln) }()
	fmt.Println(ln.Addr())
	_, _ = io.Copy(io.Discard, os.Stdin)
	return srv.Shutdown(context.Background())
}

// webhookFront returns the handler for a mode, and a function that closes its store.
func webhookFront(mode, dir string) (http.Handler, func() error, error) {
	if mode == thrownAway {
		return githubapp.NewEventDispatcher([]githubapp.EventHandler{ignore{}}, hookSecret), func() error { return nil }, nil
	}
	db, err := boltkv.Open(filepath.Join(dir, "errand.db"), boltkv.Options{})
	if err != nil {
		return nil, nil, err
	}
	st, err := store.Open(context.Background(), db, store.Options{})
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	front, err := handlers.Front([]string{hookSecret}, handlers.NewInbox(st, st, nil, zerolog.Nop(), time.Now))
	return front, db.Close, err
}

// startProfile starts a CPU profile if one is wanted, and returns a function that ends it.
func startProfile(mode string) (stop func() error, err error) {
	dir := os.Getenv(profileDir)
	if dir == "" {
		return func() error { return nil }, nil
	}
	file, err := os.CreateTemp(dir, mode+"-*.pprof")
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return file.Close()
	}, nil
}

// ignore is a handler that does nothing.
type ignore struct{}

// Handles lists the events that are sent.
func (ignore) Handles() []string { return []string{"issue_comment"} }

// Handle does nothing.
func (ignore) Handle(context.Context, string, string, []byte) error { return nil }
