package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/errand-bot/errand/internal/config"
)

// checkCommand reads a configuration as serve would, secrets included, and starts nothing.
func checkCommand(w world) *cobra.Command {
	var path string
	c := &cobra.Command{
		Use:   "check-config",
		Short: "Say what is wrong with a configuration, with line, key and what to write",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			cfg, err := config.Load(path, w.env)
			if err != nil {
				return err
			}
			pages := cfg.Listen
			if cfg.Admin.Listen != "" {
				pages = cfg.Admin.Listen
			}
			_, err = fmt.Fprintf(w.out, "ok: %s\n  listen    %s\n  pages     %s\n  data      %s\n  provider  %s\n  agent     %s\n", path, cfg.Listen, pages, cfg.Data, cfg.Provider, strings.Join(cfg.Routes(), "\n            "))
			for _, text := range cfg.Warnings() {
				if err == nil {
					_, err = fmt.Fprintf(w.out, "warning: %s\n", text)
				}
			}
			return err
		},
	}
	configFlag(c, &path)
	return c
}

// versionCommand says what this program was built from.
func versionCommand(w world) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Say what this program was built from",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			b := builtFrom()
			_, err := fmt.Fprintf(w.out, "errand %s (%s, %s/%s)\n", b.version, b.goVersion, runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}

// built is what a program knows of its making.
type built struct{ version, goVersion string }

// builtFrom reads the version that the go command wrote into the program: the module's version, or
// else the commit, with "+dirty" if the tree was changed.
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
