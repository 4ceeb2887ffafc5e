package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/errand-bot/errand/internal/runner/tetherd"
	"github.com/errand-bot/errand/internal/runner/work"
)

func checkCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "check", Args: cobra.NoArgs,
		Short: "Run a repository's checks in a fresh worktree: work.CheckSpec in, result lines out",
		RunE: func(cmd *cobra.Command, _ []string) error {
			root, err := o.dir()
			if err != nil {
				return err
			}
			var spec work.CheckSpec
			if err := readInput(cmd, &spec); err != nil {
				return err
			}
			return work.Check(cmd.Context(), root.CheckDir(), spec, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
}

func tetherCommand(o *options) *cobra.Command {
	tether := &cobra.Command{
		Use: "tether", Short: "The VM's end of the tether", Args: cobra.NoArgs, RunE: needsSubcommand,
	}
	tether.AddCommand(serveCommand(o), attachCommand(o), tetherStatusCommand(o), tetherStopCommand(o))
	return tether
}

func serveCommand(o *options) *cobra.Command {
	var config tetherd.Config
	var detach bool
	cmd := &cobra.Command{
		Use: "serve", Short: "Serve the tether's port: tetherd.Status out when it is open", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			root, err := o.dir()
			if err != nil {
				return err
			}
			config.Dir = root.TetherDir()
			if detach {
				status, err := tetherd.ServeDetached(cmd.Context(), string(root), config)
				if err != nil {
					return err
				}
				return answer(cmd, status)
			}
			config.Ready = func(s tetherd.Status) { _ = answer(cmd, s) }
			return tetherd.Serve(cmd.Context(), config)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&config.Listen, "listen", "127.0.0.1:9413", "loopback address to listen on")
	flags.DurationVar(&config.Hold, "hold", tetherd.DefaultHold, "how long a connection is held without an attached orchestrator")
	flags.BoolVar(&detach, "detach", false, "run in the background; do nothing if a daemon is running")
	return cmd
}

func attachCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "attach", Short: "Attach to the daemon: yamux on standard input and output", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			root, err := o.dir()
			if err != nil {
				return err
			}
			return tetherd.Attach(cmd.Context(), root.TetherDir(), cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}

func tetherStatusCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Print the state of the daemon: tetherd.Status out", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return orderTether(cmd, o, tetherd.Ask) },
	}
}

func tetherStopCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "stop", Short: "Stop the daemon: its last tetherd.Status out", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return orderTether(cmd, o, tetherd.Stop) },
	}
}

func orderTether(cmd *cobra.Command, o *options, order func(context.Context, string) (tetherd.Status, error)) error {
	root, err := o.dir()
	if err != nil {
		return err
	}
	status, err := order(cmd.Context(), root.TetherDir())
	if err != nil {
		return err
	}
	return answer(cmd, status)
}
