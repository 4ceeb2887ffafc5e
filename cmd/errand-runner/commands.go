package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/internal/runner"
	"github.com/errand-bot/errand/internal/runner/proc"
	"github.com/errand-bot/errand/internal/runner/roots"
	"github.com/errand-bot/errand/internal/runner/work"
)

// maxInput bounds the input of a subcommand in bytes: a prompt and the files of a run.
const maxInput = 256 << 20

// options are the flags of all subcommands.
type options struct {
	root string
}

// dir returns the absolute path of the root directory.
func (o *options) dir() (runner.Root, error) {
	if o.root == "" {
		return runner.DefaultRoot()
	}
	path, err := filepath.Abs(o.root)
	return runner.Root(path), err
}

func newCommand(version string) *cobra.Command {
	o := &options{}
	root := &cobra.Command{
		Use:           "errand-runner",
		Short:         "The part of errand that runs on a VM",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.DisableSuggestions = true // an error is one line
	root.CompletionOptions.DisableDefaultCmd = true
	root.PersistentFlags().StringVar(&o.root, "root", "", "directory of all state (default $HOME/.errand)")
	root.AddCommand(
		versionCommand(version), startCommand(o), superviseCommand(o), followCommand(o), stopCommand(o),
		statusCommand(o), runsCommand(o), workspaceCommand(), trustCommand(), withOrphanCleanup(changesetCommand()),
		withOrphanCleanup(checkCommand(o)), tetherCommand(o), initCommand(), liveCommand(),
		withOrphanCleanup(packCommand()), withOrphanCleanup(unpackCommand()), mcpCommand(version), agentCommand(),
		lfsCommand(), judgeCommand(),
	)
	root.AddCommand(boxCommands()...)
	return root
}

// withOrphanCleanup ends all processes that a command leaves behind, such as those of a filter of the agent's if git
// could not run in a PID namespace.
func withOrphanCleanup(c *cobra.Command) *cobra.Command {
	do := c.RunE
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if err := proc.Adopt(); err != nil {
			return err
		}
		return errors.Join(do(cmd, args), proc.EndOrphans())
	}
	return c
}

func versionCommand(version string) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), version)
			return err
		},
	}
}

// exchange reads one JSON value from standard input, passes it to do, and writes the answer.
func exchange[In, Out any](cmd *cobra.Command, do func(context.Context, In) (Out, error)) error {
	var in In
	if err := readInput(cmd, &in); err != nil {
		return err
	}
	out, err := do(cmd.Context(), in)
	if err != nil {
		return err
	}
	return answer(cmd, out)
}

func readInput(cmd *cobra.Command, value any) error {
	decoder := json.NewDecoder(io.LimitReader(cmd.InOrStdin(), maxInput))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(value); err != nil {
		return fmt.Errorf("read standard input: %w", err)
	}
	return nil
}

func answer(cmd *cobra.Command, value any) error {
	if err := json.NewEncoder(cmd.OutOrStdout()).Encode(value); err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	return nil
}

func startCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "start", Short: "Start a run: runner.Spec in, runner.Started out", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			root, err := o.dir()
			if err != nil {
				return err
			}
			return exchange(cmd, func(ctx context.Context, spec runner.Spec) (runner.Started, error) {
				return runner.Start(ctx, root, spec)
			})
		},
	}
}

// runFlag adds the flag with the id of a run.
func runFlag(cmd *cobra.Command, id *string) *cobra.Command {
	cmd.Flags().StringVar(id, "run", "", "id of the run")
	_ = cmd.MarkFlagRequired("run")
	return cmd
}

func superviseCommand(o *options) *cobra.Command {
	var id string
	return runFlag(&cobra.Command{
		Use: "supervise", Short: "Supervise a run (started by start)", Args: cobra.NoArgs, Hidden: true,
		RunE: func(*cobra.Command, []string) error {
			root, err := o.dir()
			if err != nil {
				return err
			}
			return runner.Supervise(root, id)
		},
	}, &id)
}

func followCommand(o *options) *cobra.Command {
	var id string
	var from int64
	cmd := runFlag(&cobra.Command{
		Use: "follow", Short: "Print a run's log as it grows: runlog.Record lines out, the exit last", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			root, err := o.dir()
			if err != nil {
				return err
			}
			return runner.Follow(cmd.Context(), root, id, from, cmd.OutOrStdout())
		},
	}, &id)
	cmd.Flags().Int64Var(&from, "from", 0, "print lines with a greater number than this")
	return cmd
}

func stopCommand(o *options) *cobra.Command {
	var id, reason string
	cmd := runFlag(&cobra.Command{
		Use: "stop", Short: "End a run with all its processes: runlog.Exit out", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			root, err := o.dir()
			if err != nil {
				return err
			}
			exit, err := runner.Stop(cmd.Context(), root, id, reason)
			if err != nil {
				return err
			}
			return answer(cmd, exit)
		},
	}, &id)
	cmd.Flags().StringVar(&reason, "reason", "", "reason to record in the run's exit")
	return cmd
}

func statusCommand(o *options) *cobra.Command {
	var id string
	return runFlag(&cobra.Command{
		Use: "status", Short: "Print the state of a run: runner.Status out", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			root, err := o.dir()
			if err != nil {
				return err
			}
			status, err := runner.StatusOf(root, id)
			if err != nil {
				return err
			}
			return answer(cmd, status)
		},
	}, &id)
}

func workspaceCommand() *cobra.Command {
	workspace := &cobra.Command{
		Use: "workspace", Short: "Prepare and update workspaces", Args: cobra.NoArgs, RunE: needsSubcommand,
	}
	workspace.AddCommand(
		withOrphanCleanup(&cobra.Command{
			Use: "prepare", Short: "Create a workspace: work.PrepareSpec in, work.Place out", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return exchange(cmd, work.Prepare) },
		}),
		withOrphanCleanup(&cobra.Command{
			Use: "reset", Short: "Move the workspace to a published commit: work.ResetSpec in, work.Place out", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return exchange(cmd, work.Reset) },
		}),
		withOrphanCleanup(&cobra.Command{
			Use: "rebase", Short: "Move the agent's commits: work.RebaseSpec in, work.Rebased out", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return exchange(cmd, work.Rebase) },
		}),
		withOrphanCleanup(&cobra.Command{
			Use: "lend", Short: "Add the operator's test files, or remove them: work.LendSpec in, work.Lent out", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return exchange(cmd, work.Lend) },
		}),
	)
	return workspace
}

// needsSubcommand refuses a parent command without a subcommand, which would otherwise print its help and succeed.
func needsSubcommand(cmd *cobra.Command, _ []string) error {
	return fmt.Errorf("%s: a subcommand is required; see --help", cmd.CommandPath())
}

func trustCommand() *cobra.Command {
	return &cobra.Command{
		Use: "trust", Short: "Let programs trust another authority for certificates: roots.Spec in, true out", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return exchange(cmd, func(_ context.Context, spec roots.Spec) (bool, error) { return true, roots.Install(spec) })
		},
	}
}

func changesetCommand() *cobra.Command {
	var spec work.CollectSpec
	cmd := &cobra.Command{
		Use: "changeset", Short: "Commit uncommitted changes and print the changeset since a commit", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			set, err := work.Collect(cmd.Context(), spec)
			if err != nil {
				return err
			}
			return changeset.Encode(cmd.OutOrStdout(), set)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&spec.Dir, "dir", "", "the workspace")
	flags.StringVar(&spec.Base, "base", "", "the commit that the orchestrator knows")
	flags.StringVar(&spec.Newer, "newer", "", "commit that was pushed since; it becomes the base if it is an ancestor of the head")
	flags.StringArrayVar(&spec.AllowMerge, "allow-merge", nil, "commit that may be a merge's second parent")
	flags.StringArrayVar(&spec.Leave, "leave", nil, "path to leave uncommitted")
	flags.StringVar(&spec.Message, "message", "", "message of the commit of uncommitted changes, and of a squashed commit")
	_, _ = cmd.MarkFlagRequired("dir"), cmd.MarkFlagRequired("base")
	return cmd
}

func liveCommand() *cobra.Command {
	return &cobra.Command{
		Use: runner.LiveCommand, Short: "Act as the agent's user (started by supervise): an order in and answers out on a socket",
		Args: cobra.NoArgs, Hidden: true,
		RunE: func(*cobra.Command, []string) error { return runner.Live(os.Stdin) },
	}
}

func initCommand() *cobra.Command {
	return &cobra.Command{
		Use: proc.InitCommand, Short: "Process 1 of a run's namespace (started by supervise)", Hidden: true,
		DisableFlagParsing: true,
		Run:                func(_ *cobra.Command, args []string) { os.Exit(proc.Init(args)) },
	}
}

func runsCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "runs", Short: "List the runs that were started: their ids as JSON out", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			root, err := o.dir()
			if err != nil {
				return err
			}
			ids, err := runner.Runs(root)
			if err != nil {
				return err
			}
			return answer(cmd, ids)
		},
	}
}
