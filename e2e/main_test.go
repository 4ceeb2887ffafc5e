package e2e

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/server"
	"github.com/errand-bot/errand/internal/sim/simagent"
)

// atOnce is how many worlds run side by side: they mostly wait for one another.
const atOnce = "4"

// shared is what all stories use: it is expensive to make and nothing changes it.
type shared struct {
	bin string // folder of errand-runner
	key *rsa.PrivateKey
	err error
	// kinds are the kinds of boxes that work here, found by trying them as a box would.
	kinds map[string]bool
}

// common is set once by TestMain, before any test runs.
var common shared

// TestMain is also the agent and, for stories that kill it, the server.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "simagent":
			os.Exit(simagent.Main(os.Args[2:], os.Stdin, os.Stdout, os.Stderr, os.Environ()))
		case "serve":
			if err := serve(os.Args[2:]); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = f.Value.Set(atOnce)
	}
	dir, err := os.MkdirTemp("", "errand-e2e-")
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

// prepare builds the runner and makes the App's key.
func prepare(dir string) shared {
	s := shared{bin: dir}
	cmd := exec.Command("go", "build", "-o", filepath.Join(dir, "errand-runner"), "github.com/errand-bot/errand/cmd/errand-runner")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		s.err = fmt.Errorf("build errand-runner: %w\n%s", err, out)
		return s
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	s.kinds = map[string]bool{
		"bwrap":  exec.CommandContext(ctx, "bwrap", "--ro-bind", "/", "/", "--unshare-all", "--proc", "/proc", "--dev", "/dev", "true").Run() == nil,
		"userns": exec.CommandContext(ctx, "unshare", "--user", "--map-root-user", "--net", "--pid", "--fork", "--mount-proc", "true").Run() == nil,
	}
	s.key, s.err = rsa.GenerateKey(rand.Reader, 2048)
	return s
}

// serve runs errand as its command would: CONFIG ADDRESS BINDIR LOG.
func serve(args []string) error {
	cfg, err := config.Load(args[0], os.LookupEnv)
	if err != nil {
		return err
	}
	cfg.PublicURL = "http://" + args[1]
	log, err := os.OpenFile(args[3], os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", args[1])
	if err != nil {
		return err
	}
	srv, err := server.New(ctx, cfg, server.Options{Log: zerolog.New(log).With().Timestamp().Logger(), BinDir: args[2], Listener: ln, StandInAgent: true})
	if err != nil {
		return err
	}
	if err := srv.Run(ctx); err != nil && !strings.Contains(err.Error(), "closed") {
		return err
	}
	return srv.Close()
}
