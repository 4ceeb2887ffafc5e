package local_test

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/errand-bot/errand/internal/fleet/local/box"
)

// TestMain makes the test binary serve as errand-runner, too.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		serve := map[string]func(context.Context, []string) error{"box-supervise": box.Supervise, "box-ssh": box.ServeSSH, "box-hostkey": box.HostKey}
		if run, ok := serve[os.Args[1]]; ok {
			if err := run(context.Background(), os.Args[2:]); err != nil {
				fmt.Fprintln(os.Stderr, os.Args[1]+":", err)
				syscall.Exit(1)
			}
			syscall.Exit(0) // the race detector would make os.Exit wait for a second
		}
	}
	// What must not reach a box.
	if err := os.Setenv("ERRAND_TEST_SECRET", "1"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
