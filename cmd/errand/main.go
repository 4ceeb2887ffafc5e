// Command errand is the service: it serves the webhooks of a GitHub App and works on issues.
//
//	errand serve -c config.yml          run until SIGINT or SIGTERM
//	errand check-config -c config.yml   say what is wrong with a configuration, and change nothing
//	errand logs OWNER/REPO#N            show what the agents of an issue's task said and did
//	errand bake GROUP -c config.yml     bake a base image for VMs
//	errand reap -c config.yml           delete at the provider of VMs what nobody needs, or say what that is
//	errand simulate-costs               say what VMs would cost
//	errand version                      say what was built from what
//
// It exits 0 when all is well, 1 when something could not be done, and 2 when it was called wrongly.
// main only hands over to run, which tests call as a function. Start reading there.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
)

// The exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	os.Exit(run(context.Background(), world{args: os.Args[1:], out: os.Stdout, err: os.Stderr, env: os.LookupEnv}))
}

// world is what the program gets from outside.
type world struct {
	args     []string
	out, err io.Writer
	env      func(string) (string, bool)
	bin      string // where errand-runner is; the program's own folder unless set
}

// errUsage marks an error of the caller's.
type errUsage struct{ error }

// run does what the arguments say and returns the exit code. Errors are printed here and nowhere else.
func run(ctx context.Context, w world) int {
	root := &cobra.Command{
		Use:           "errand",
		Short:         "A GitHub App that plans, builds and revises, on issues that are assigned to it",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return errUsage{fmt.Errorf("unknown command %q", args[0])}
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetArgs(w.args)
	root.SetOut(w.out)
	root.SetErr(w.err)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return errUsage{err} })
	root.AddCommand(serveCommand(w), checkCommand(w), logsCommand(w), bakeCommand(w), reapCommand(w), costsCommand(w), versionCommand(w))
	err := root.ExecuteContext(ctx)
	var usage errUsage
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &usage):
		_, _ = fmt.Fprintf(w.err, "errand: %v\nSee `errand --help`.\n", err)
		return exitUsage
	default:
		_, _ = fmt.Fprintf(w.err, "errand: %v\n", err)
		return exitFailed
	}
}

// noArgs refuses arguments besides flags.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return errUsage{fmt.Errorf("%s takes no argument, but got %q", c.Name(), args[0])}
	}
	return nil
}

// configFlag adds -c to a command.
func configFlag(c *cobra.Command, path *string) {
	c.Flags().StringVarP(path, "config", "c", "config.yml", "the configuration file")
}
