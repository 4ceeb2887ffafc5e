package runner_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/errand-bot/errand/internal/runner"
	"github.com/errand-bot/errand/internal/runner/proc"
	"github.com/errand-bot/errand/internal/runner/tetherd"
)

// TestMain lets the test binary play errand-runner for the processes that the tests start.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "supervise": // --root ROOT --run ID
			if err := runner.Supervise(runner.Root(os.Args[3]), os.Args[5]); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		case runner.LiveCommand:
			if err := runner.Live(os.Stdin); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		case hastyCommand: // SIZE
			writeHastily(os.Args[2])
		case proc.InitCommand:
			os.Exit(proc.Init(os.Args[2:]))
		case "tether": // serve --root ROOT --listen ADDRESS
			err := tetherd.Serve(context.Background(), tetherd.Config{
				Dir: runner.Root(os.Args[4]).TetherDir(), Listen: os.Args[6],
			})
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	os.Exit(m.Run())
}
