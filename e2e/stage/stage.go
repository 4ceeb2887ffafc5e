// Package stage provides the environment of the stories and the crash tests: the programs that they need,
// built once, and the roles of their test programs when they are executed again.
//
// A test program that calls Role first in its TestMain can also be a separate errand process that can be killed, and a simulated
// agent. Start reading at Role, then at Prepare.
package stage

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/buildtest"
	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/server"
	"github.com/errand-bot/errand/internal/sim/simagent"
)

// Shared is the immutable environment of all lives, which is expensive to create.
type Shared struct {
	Bin string // directory of errand-runner and of the simulated agents
	Err error  // error of Prepare
}

// Prepare builds the runner and the simulated agents in dir.
func Prepare(dir string) Shared {
	s := Shared{Bin: dir}
	for _, name := range []string{"errand-runner", agents} {
		if s.Err = buildtest.Program(context.Background(), dir, name); s.Err != nil {
			return s
		}
	}
	return s
}

// agents is the program of the simulated agents.
const agents = "simagents"

// Agent returns the command of a simulated agent: simagent or simcodex.
func (s Shared) Agent(name string) []string { return []string{filepath.Join(s.Bin, agents), name} }

// Role runs the role given by the program's arguments and returns its exit code; as the agent it exits the program
// itself. It returns false if the program was started as a test.
func Role(args []string) (code int, played bool) {
	if len(args) < 2 {
		return 0, false
	}
	switch args[1] {
	case "simagent": // where VMs have nothing else than this program
		code = simagent.Main(args[2:], os.Stdin, os.Stdout, os.Stderr, os.Environ())
		syscall.Exit(code) // with the race detector, os.Exit waits for a second, at each call of the agent
		return code, true
	case "serve":
		if err := serve(args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1, true
		}
		return 0, true
	}
	return 0, false
}

// Child returns a command, not yet started, that runs errand as a separate process: this program in its other role. It
// stops on SIGTERM. Errand's log is appended to the file log. A nil timing is production's.
func Child(config, addr, bin, log string, timing *server.Timing) (*exec.Cmd, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(timing)
	if err != nil {
		return nil, err
	}
	return exec.Command(exe, "serve", config, addr, bin, log, string(text)), nil
}

// serve runs errand as its command does: CONFIG ADDRESS BINDIR LOG TIMING.
func serve(args []string) error {
	if len(args) != 5 {
		return fmt.Errorf("serve: want CONFIG ADDRESS BINDIR LOG TIMING, not %q", args)
	}
	var timing *server.Timing
	if err := json.Unmarshal([]byte(args[4]), &timing); err != nil {
		return fmt.Errorf("serve: read the timing: %w", err)
	}
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
	srv, err := server.New(ctx, cfg, server.Options{
		Log:          zerolog.New(log).With().Timestamp().Logger(),
		BinDir:       args[2],
		Listener:     ln,
		StandInAgent: true,
		Timing:       timing,
	})
	if err != nil {
		return err
	}
	if err := srv.Run(ctx); err != nil && !strings.Contains(err.Error(), "closed") {
		return err
	}
	return srv.Close()
}
