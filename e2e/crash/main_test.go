package crash

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/server"
	"github.com/errand-bot/errand/internal/sim/simagent"
)

// shared is what all lives use: it is expensive to make and nothing changes it.
type shared struct {
	bin string // folder of errand-runner
	key *rsa.PrivateKey
	err error
}

// common is set once by TestMain, before any test runs.
var common shared

// TestMain is also the agent, and the errand that is killed.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "simagent" {
		os.Exit(simagent.Main(os.Args[2:], os.Stdin, os.Stdout, os.Stderr, os.Environ()))
	}
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		if err := serve(context.Background(), os.Args[2], os.Args[3], os.Args[4]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	dir, err := os.MkdirTemp("", "errand-crash-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	common = prepare(dir)
	code := m.Run()
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// serve runs errand until it is killed; its log goes to the standard error.
func serve(ctx context.Context, file, addr, bin string) error {
	cfg, err := config.Load(file, os.LookupEnv)
	if err != nil {
		return err
	}
	cfg.PublicURL = "http://" + addr
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	srv, err := server.New(ctx, cfg, server.Options{Log: zerolog.New(os.Stderr).With().Timestamp().Logger(), BinDir: bin, Listener: ln, StandInAgent: true})
	if err != nil {
		return err
	}
	return srv.Run(ctx)
}

// prepare builds the runner and makes the App's key.
func prepare(dir string) shared {
	s := shared{bin: dir}
	cmd := exec.Command("go", "build", "-o", filepath.Join(dir, "errand-runner"), "github.com/errand-bot/errand/cmd/errand-runner")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		s.err = fmt.Errorf("build errand-runner: %w\n%s", err, out)
		return s
	}
	s.key, s.err = rsa.GenerateKey(rand.Reader, 2048)
	return s
}
