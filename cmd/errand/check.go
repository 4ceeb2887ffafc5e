package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/errand-bot/errand/internal/cli"
	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/gateway"
	"github.com/errand-bot/errand/internal/server"
)

// checkCommand validates a configuration with its secrets, as serve does, and starts nothing.
func checkCommand(w cli.World) *cobra.Command {
	var path string
	var models bool
	c := &cobra.Command{
		Use:   "check-config",
		Short: "Check a configuration: print each mistake with its line, key and correction",
		Args:  cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := config.Load(path, w.Lookup)
			if err != nil {
				return err
			}
			pages := cfg.Listen
			if cfg.Admin.Listen != "" {
				pages = cfg.Admin.Listen
			}
			_, err = fmt.Fprintf(w.Out, "ok: %s\n  listen    %s\n  pages     %s\n  data      %s\n  provider  %s\n  agent     %s\n", path, cfg.Listen, pages, cfg.Data, cfg.Provider, strings.Join(cfg.Routes(), "\n            "))
			for _, text := range cfg.Warnings() {
				if err == nil {
					_, err = fmt.Fprintf(w.Out, "warning: %s\n", text)
				}
			}
			if err != nil || !models {
				return err
			}
			return tryModels(cmd.Context(), w, cfg)
		},
	}
	cli.ConfigFlag(c, &path)
	c.Flags().BoolVar(&models, "models", false, "check that the model providers accept their keys (free of charge)")
	return c
}

// tryModels checks whether each model provider accepts its key.
func tryModels(ctx context.Context, w cli.World, cfg config.Config) error {
	tried, bad := server.TryModels(ctx, cfg), 0
	for _, name := range slices.Sorted(maps.Keys(tried)) {
		text := "accepts the key"
		if cfg.Subscribed()[name] {
			text = "accepts the subscription"
		}
		var unclear gateway.UnclearError
		if err := tried[name]; errors.As(err, &unclear) {
			text = err.Error()
		} else if err != nil {
			bad, text = bad+1, err.Error()
		}
		if _, err := fmt.Fprintf(w.Out, "  models.%s: %s\n", name, text); err != nil {
			return err
		}
	}
	if bad > 0 {
		return fmt.Errorf("%d of %d model providers are unusable", bad, len(tried))
	}
	return nil
}

// versionCommand prints the version.
func versionCommand(w cli.World) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			b := builtFrom()
			_, err := fmt.Fprintf(w.Out, "errand %s (%s, %s/%s)\n", b.version, b.goVersion, runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}

// built is the build information of a program.
type built struct{ version, goVersion string }

// builtFrom reads the version that the go command stored in the program: the module's version, otherwise the commit,
// with "+dirty" if the tree was modified.
func builtFrom() built {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return built{version: "unknown", goVersion: runtime.Version()}
	}
	b := built{version: info.Main.Version, goVersion: info.GoVersion}
	if b.version != "" && b.version != "(devel)" {
		return b
	}
	b.version = "devel"
	vcs := map[string]string{}
	for _, s := range info.Settings {
		vcs[s.Key] = s.Value
	}
	if rev := vcs["vcs.revision"]; rev != "" {
		b.version += "-" + rev[:min(12, len(rev))]
		if vcs["vcs.modified"] == "true" {
			b.version += "+dirty"
		}
	}
	return b
}
