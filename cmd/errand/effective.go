package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/errand-bot/errand/internal/cli"
	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/logview"
)

// configCommand lists the values of the configuration with their origins.
func configCommand(w cli.World) *cobra.Command {
	var path string
	var all, asJSON bool
	c := &cobra.Command{
		Use:   "config",
		Short: "List the values of the configuration with the origin of each",
		Long: "List the values that the configuration file sets, with its lines; with --effective also all defaults. Secrets are never shown, only\n" +
			"whether they are set, and from which environment variable or file. errand need not be running: one that runs has the values that\n" +
			"the file had when it was started.",
		Args: cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			list, err := config.Effective(path, w.Lookup)
			if err != nil {
				return err
			}
			if !all {
				list = slices.DeleteFunc(list, func(s config.Setting) bool { return s.Origin == config.FromDefault })
			}
			if asJSON {
				data, err := json.MarshalIndent(map[string]any{"file": path, "settings": list}, "", "  ")
				if err != nil {
					return fmt.Errorf("print the configuration: %w", err)
				}
				return cli.PrintJSON(w.Out, append(data, '\n'))
			}
			var s strings.Builder
			t := cli.NewTable(&s, "KEY", "VALUE", "ORIGIN")
			for _, v := range list {
				t.Row(v.Key, v.Text(), v.OriginText(path))
			}
			t.Flush()
			_, err = io.WriteString(w.Out, logview.Plain(s.String()))
			return err
		},
	}
	cli.ConfigFlag(c, &path)
	c.Flags().BoolVar(&all, "effective", false, "list all values, also the defaults")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON: file and settings")
	return c
}
