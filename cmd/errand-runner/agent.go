package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/errand-bot/errand/internal/agentloop"
	"github.com/errand-bot/errand/internal/agentloop/wire"
)

// maxSettings bounds the file with a run's settings in bytes.
const maxSettings = 8 << 20

func agentCommand() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use: "agent", Args: cobra.NoArgs,
		Short: "Run the agent `api`: the prompt in, lines of package wire out",
		Long: "Calls a model over the Messages API, runs the tools that the model calls, and prints events.\n" +
			"ERRAND_AGENT_RETRIES and ERRAND_AGENT_RETRY_WAIT (such as 500ms) set the number of retries of a model call and the initial delay.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			settings, err := readSettings(path)
			if err != nil {
				return err
			}
			opt, err := agentOptions()
			if err != nil {
				return err
			}
			prompt, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), maxInput))
			if err != nil {
				return fmt.Errorf("read the prompt: %w", err)
			}
			os.Exit(agentloop.Run(cmd.Context(), settings, string(prompt), cmd.OutOrStdout(), opt))
			return nil
		},
	}
	cmd.Flags().StringVar(&path, "settings", "", "file with the run's settings (wire.Settings)")
	_ = cmd.MarkFlagRequired("settings")
	return cmd
}

func readSettings(path string) (settings wire.Settings, err error) {
	f, err := os.Open(path)
	if err != nil {
		return settings, fmt.Errorf("open the settings: %w", err)
	}
	defer f.Close()
	decoder := json.NewDecoder(io.LimitReader(f, maxSettings))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&settings); err != nil {
		return settings, fmt.Errorf("read the settings: %w", err)
	}
	return settings, nil
}

// agentOptions reads the options that the operator sets for every run in the environment.
func agentOptions() (opt agentloop.Options, err error) {
	opt.Env, opt.NewID = os.Environ(), uuid.NewString
	if text := os.Getenv("ERRAND_AGENT_RETRIES"); text != "" {
		if opt.Retries, err = strconv.Atoi(text); err != nil || opt.Retries < 0 || opt.Retries > 20 {
			return opt, fmt.Errorf("ERRAND_AGENT_RETRIES: %q is not a number from 0 to 20", text)
		}
		if opt.Retries == 0 {
			opt.Retries = -1
		}
	}
	if text := os.Getenv("ERRAND_AGENT_RETRY_WAIT"); text != "" {
		if opt.RetryWait, err = time.ParseDuration(text); err != nil || opt.RetryWait <= 0 {
			return opt, fmt.Errorf("ERRAND_AGENT_RETRY_WAIT: %q is not a duration such as 500ms", text)
		}
	}
	return opt, nil
}
