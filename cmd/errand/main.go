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
// Start with [run], to which main hands over and which tests call.
package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/errand-bot/errand/internal/cli"
	"github.com/errand-bot/errand/internal/operator"
)

func main() {
	os.Exit(run(context.Background(), cli.World{
		Args: os.Args[1:], In: os.Stdin, Terminal: cli.IsTerminal(os.Stdin), Screen: cli.IsTerminal(os.Stdout), Out: os.Stdout, Err: os.Stderr, Lookup: os.LookupEnv,
	}))
}

// run runs the command in the arguments and returns the exit code.
func run(ctx context.Context, w cli.World) int {
	root := cli.Root(w,
		setupCommand(w), serveCommand(w), checkCommand(w), doctorCommand(w), logsCommand(w), bakeCommand(w), reapCommand(w), costsCommand(w), versionCommand(w),
		rotateCommand(w), verifyCommand(w), configCommand(w), completionCommand(w), backupCommand(w), restoreCommand(w), initCommand(w),
	)
	root.AddCommand(operator.Commands(w)...)
	addCompletions(root, w)
	groupCommands(root)
	useSetupConfig(root, w, filepath.Join(setupDir(w), cli.DefaultConfig))
	return cli.Execute(ctx, w, root)
}

// inContainer reports that errand is the program of a container: its image, and several container managers, set the variable.
func inContainer(w cli.World) bool {
	manager, _ := w.Lookup("container")
	return manager != ""
}

// groupCommands groups the list of commands in the help. Those that are not named here come last.
func groupCommands(root *cobra.Command) {
	for _, g := range []struct{ title, commands string }{
		{"Set errand up:", "setup serve doctor init check-config config"},
		{"See what it does:", "status tasks task logs audit verify"},
		{"Act on tasks:", "run adopt stop retry cancel restart budget pause resume drain destroy purge"},
		{"Maintain it:", "backup restore rotate bake reap simulate-costs"},
	} {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, c := range root.Commands() {
			if slices.Contains(strings.Fields(g.commands), c.Name()) {
				c.GroupID = g.title
			}
		}
	}
}
