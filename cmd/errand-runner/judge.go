package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/errand-bot/errand/internal/shellrules"
)

func judgeCommand() *cobra.Command {
	var path string
	var refuseOnly bool
	cmd := &cobra.Command{
		Use: "judge", Args: cobra.NoArgs,
		Short: "Decide whether an agent may run a command or change a file: the hook's input in, its decision out",
		RunE: func(cmd *cobra.Command, _ []string) error {
			f, err := os.Open(path)
			if err != nil {
				return fmt.Errorf("open the rules: %w", err)
			}
			defer f.Close()
			var rules shellrules.Rules
			if err := json.NewDecoder(io.LimitReader(f, maxSettings)).Decode(&rules); err != nil {
				return fmt.Errorf("read the rules: %w", err)
			}
			return rules.Hook(cmd.InOrStdin(), cmd.OutOrStdout(), refuseOnly)
		},
	}
	cmd.Flags().StringVar(&path, "rules", "", "file with the rules (shellrules.Rules)")
	cmd.Flags().BoolVar(&refuseOnly, "refuse-only", false, "print nothing for allowed calls")
	_ = cmd.MarkFlagRequired("rules")
	return cmd
}
