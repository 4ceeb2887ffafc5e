// Package cli has what the commands of errand have in common: the environment of the program, how its errors become exit codes, flags and
// names that several commands take, and tables and JSON for its output. The commands are in `cmd/errand` and `internal/operator`.
//
// Start with [Execute], which runs a command line.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// The exit codes.
const (
	ExitOK     = 0
	ExitFailed = 1
	ExitUsage  = 2
	// ExitUnchecked is that of a check without a result.
	ExitUnchecked = 2
)

// World is the program's environment.
type World struct {
	Args     []string
	In       io.Reader
	Terminal bool // a person answers at In
	Screen   bool // a person sees Out
	Out, Err io.Writer
	Lookup   func(string) (string, bool) // of environment variables
	BinDir   string                      // folder of errand-runner; by default the program's own
}

// usageError marks a usage error.
type usageError struct{ error }

// Usage marks an error as one of usage.
func Usage(err error) error { return usageError{err} }

// uncheckedError marks an error because of which something could not be checked.
type uncheckedError struct{ error }

// Unchecked marks an error because of which a check has no result: its exit code differs from that of a check that failed.
func Unchecked(err error) error { return uncheckedError{err} }

// Root returns errand's command line with these commands.
func Root(w World, commands ...*cobra.Command) *cobra.Command {
	root := &cobra.Command{
		Use:   "errand",
		Short: "A GitHub App that plans, implements and revises the issues assigned to it",
		Long: "A GitHub App that plans, implements and revises the issues assigned to it.\n\n" +
			"Begin with `errand setup`. If something does not work, `errand doctor` says why.",
		SilenceErrors:              true,
		SilenceUsage:               true,
		SuggestionsMinimumDistance: 2,
		Args:                       knownCommand,
		RunE:                       func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetArgs(w.Args)
	root.SetOut(w.Out)
	root.SetErr(w.Err)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return Usage(err) })
	root.AddCommand(commands...)
	return root
}

// Execute runs the command in the arguments and returns the exit code. Only Execute prints errors.
func Execute(ctx context.Context, w World, root *cobra.Command) int {
	called, err := root.ExecuteContextC(ctx)
	var usage usageError
	var unchecked uncheckedError
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &usage):
		_, _ = fmt.Fprintf(w.Err, "errand: %v\nSee `%s --help`.\n", err, called.CommandPath())
		return ExitUsage
	case errors.As(err, &unchecked):
		_, _ = fmt.Fprintf(w.Err, "errand: %v\n", err)
		return ExitUnchecked
	default:
		_, _ = fmt.Fprintf(w.Err, "errand: %v\n", err)
		return ExitFailed
	}
}

// knownCommand refuses the name of a command that does not exist.
func knownCommand(root *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	text := fmt.Sprintf("unknown command %q", args[0])
	if like := root.SuggestionsFor(args[0]); len(like) > 0 {
		text += "; did you mean " + strings.Join(like, " or ") + "?"
	}
	return Usage(errors.New(text))
}

// NoArgs refuses arguments that are not flags.
func NoArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usage(fmt.Errorf("%s takes no arguments, got %q", c.Name(), args[0]))
	}
	return nil
}

// DefaultConfig is the configuration file if -c names none.
const DefaultConfig = "config.yml"

// ConfigFlag adds -c to a command.
func ConfigFlag(c *cobra.Command, path *string) {
	c.Flags().StringVarP(path, "config", "c", DefaultConfig, "configuration file")
}

// TaskName matches a task, as OWNER/REPO#N.
var TaskName = regexp.MustCompile(`^[A-Za-z0-9_-]+/[A-Za-z0-9._-]+#[1-9][0-9]*$`)

// RepoName matches a repository, as OWNER/REPO.
var RepoName = regexp.MustCompile(`^[A-Za-z0-9_-]+/[A-Za-z0-9._-]+$`)

// UntilSignal returns a context that ends at the first SIGINT or SIGTERM. After that, a further signal terminates the
// program.
func UntilSignal(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		select {
		case <-signals:
		case <-ctx.Done():
		}
		signal.Stop(signals)
		cancel()
	}()
	return ctx, cancel
}
