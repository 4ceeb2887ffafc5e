package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/buildtest"
	"github.com/errand-bot/errand/internal/sim/simagent"
)

// TestMain also runs the agent, and the server and the client of the webhook benchmark.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "simagent" {
		syscall.Exit(simagent.Main(os.Args[2:], os.Stdin, os.Stdout, os.Stderr, os.Environ())) // with the race detector, os.Exit waits for a second
	}
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "hook") {
		if err := hookProgram(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			syscall.Exit(1)
		}
		syscall.Exit(0)
	}
	dir, err := os.MkdirTemp("", "errand-bench-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	common.bin = dir
	code := m.Run()
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// hookProgram runs hookserver MODE DIR, or hookload ADDRESS DURATION LIMIT.
func hookProgram(args []string) error {
	switch {
	case args[0] == "hookserver" && len(args) == 3:
		return hookServer(args[1], args[2])
	case args[0] == "hookload" && len(args) == 4:
		within, err := time.ParseDuration(args[2])
		if err != nil {
			return err
		}
		limit, err := strconv.Atoi(args[3])
		if err != nil {
			return err
		}
		return hookLoad(args[1], within, limit)
	}
	return fmt.Errorf("unknown arguments %q", args)
}

// shared holds expensive things that several tests use; the first test that needs them creates them.
type shared struct {
	once sync.Once
	bin  string // directory of errand-runner
	err  error
}

// common is set once and never changed.
var common shared

// prepare builds the runner.
func prepare(tb testing.TB) *shared {
	tb.Helper()
	common.once.Do(func() {
		if common.err = buildtest.Program(context.Background(), common.bin, "errand-runner"); common.err != nil {
			return
		}
		if common.err = os.Symlink("errand-runner", filepath.Join(common.bin, "errand-runner-linux-"+runtime.GOARCH)); common.err != nil {
			return
		}
	})
	check(tb, common.err)
	return &common
}

func check(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
