package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/errand-bot/errand/internal/fleet/local/box"
)

// boxCommands returns the subcommands with which the local provider starts its sandboxes. Package box parses their
// flags.
func boxCommands() []*cobra.Command {
	return []*cobra.Command{
		boxCommand("box-supervise", "Supervise a local sandbox (started by the local provider)", box.Supervise),
		boxCommand("box-ssh", "Serve SSH in a local sandbox (started by box-supervise)", box.ServeSSH),
		boxCommand("box-hostkey", "Replace the SSH host key (errand-hostkey in a local sandbox that simulates a cloud VM)", box.HostKey),
	}
}

func boxCommand(name, short string, do func(context.Context, []string) error) *cobra.Command {
	return &cobra.Command{
		Use: name, Short: short, Hidden: true, DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error { return do(cmd.Context(), args) },
	}
}
