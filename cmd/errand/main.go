// Command errand is the service: it serves the webhooks of a GitHub App and works on issues.
//
//	errand setup                        create the GitHub App and the configuration
//	errand serve -c config.yml          run until SIGINT or SIGTERM
//	errand doctor -c config.yml         find out what does not work
//	errand status -c config.yml         show the open tasks, costs and problems
//	errand task OWNER/REPO#N            show one task; tasks lists them
//	errand logs OWNER/REPO#N            show the transcripts of an issue's task
//	errand run OWNER/REPO#N             begin a task for an issue; cancel, stop, retry, restart and budget direct it
//	errand pause [OWNER/REPO]           start no new runs; also resume and drain
//	errand init OWNER/REPO              propose a repository's settings in a pull request
//
// `errand help` lists the others. The exit code is 0 for success, 1 for a failure, and 2 for wrong usage.
//
// Start here: [run], to which main hands over and which tests call.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/errand-bot/errand/internal/setup"
)

// The exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	os.Exit(run(context.Background(), world{args: os.Args[1:], in: os.Stdin, terminal: setup.IsTerminal(os.Stdin), screen: setup.IsTerminal(os.Stdout), out: os.Stdout, err: os.Stderr, env: os.LookupEnv}))
}

// world is the program's environment.
type world struct {
	args     []string
	in       io.Reader
	terminal bool // a person answers at in
	screen   bool // a person sees out
	out, err io.Writer
	env      func(string) (string, bool)
	bin      string // folder of errand-runner; by default the program's own
}

// inContainer reports that errand is the program of a container: its image, and several container managers, set the variable.
func (w world) inContainer() bool {
	manager, _ := w.env("container")
	return manager != ""
}

// errUsage marks a usage error.
type errUsage struct{ error }

// run runs the command in the arguments and returns the exit code. Only run prints errors.
func run(ctx context.Context, w world) int {
	root := &cobra.Command{
		Use:           "errand",
		Short:         "A GitHub App that plans, implements and revises the issues assigned to it",
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
	root.AddCommand(
		setupCommand(w), serveCommand(w), checkCommand(w), doctorCommand(w), statusCommand(w), logsCommand(w), adoptCommand(w), runCommand(w), bakeCommand(w), reapCommand(w), costsCommand(w), versionCommand(w),
	)
	root.AddCommand(actionCommands(w)...)
	root.AddCommand(purgeCommand(w), destroyCommand(w))
	root.AddCommand(pauseCommands(w)...)
	root.AddCommand(tasksCommand(w), taskCommand(w), auditCommand(w), rotateCommand(w), configCommand(w), completionCommand(w))
	root.AddCommand(backupCommand(w), restoreCommand(w), initCommand(w))
	addCompletions(root, w)
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

// noArgs refuses arguments that are not flags.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return errUsage{fmt.Errorf("%s takes no arguments, got %q", c.Name(), args[0])}
	}
	return nil
}

// configFlag adds -c to a command.
func configFlag(c *cobra.Command, path *string) {
	c.Flags().StringVarP(path, "config", "c", "config.yml", "configuration file")
}
