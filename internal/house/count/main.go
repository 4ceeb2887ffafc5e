// Command count runs `go test -json` with the arguments given and says what came of it: a line per
// package, the output of what failed, every skip with its reason, what tests say that they proved (lines that
// begin with "PROOF: "), and a closing line with the numbers.
//
//	go run ./internal/house/count [-slowest N] -- [go test's arguments]
//
// Subtests count like tests. It exits as go test does, and also fails if no test ran at all: a run
// that tests nothing proves nothing. Start reading at tally.read.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

func main() {
	slowest := flag.Int("slowest", 0, "also name the `N` slowest tests")
	flag.Parse()
	// Ctrl-C reaches go test as well, which ends and so ends us.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, append([]string{"test", "-json"}, flag.Args()...), *slowest, os.Stdout)
	stop()
	os.Exit(code)
}

// run runs the go command and tells what it reports. It returns the exit code.
func run(ctx context.Context, args []string, slowest int, out io.Writer) int {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		_, _ = fmt.Fprintf(out, "count: start go: %v\n", err)
		return 1
	}
	t := newTally(out)
	readErr := t.read(stdout)
	err = cmd.Wait()
	t.report(slowest)
	var exit *exec.ExitError
	switch {
	case readErr != nil:
		_, _ = fmt.Fprintf(out, "count: %v\n", readErr)
		return 1
	case errors.As(err, &exit):
		return max(1, exit.ExitCode())
	case err != nil:
		_, _ = fmt.Fprintf(out, "count: go test: %v\n", err)
		return 1
	case t.failed > 0 || t.passed+t.skipped == 0:
		return 1
	}
	return 0
}
