package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/errand-bot/errand/internal/bake"
	"github.com/errand-bot/errand/internal/cli"
	"github.com/errand-bot/errand/internal/clock"
	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/server"
)

// bakeCommand bakes base images.
func bakeCommand(w cli.World) *cobra.Command {
	var path string
	c := &cobra.Command{
		Use:   "bake GROUP…",
		Short: "Bake new base images for groups of repositories",
		Long: "Create a VM, run the group's script on it, copy its repositories there, remove everything that VMs must not\n" +
			"share, and create an image of the disk. VMs for these repositories are then created from it. The VM is always\n" +
			"deleted, and the two newest images of each group are kept.\n\n" +
			"If errand is running, it bakes the image instead. It also bakes automatically when a recipe has changed.",
		RunE: func(c *cobra.Command, args []string) error { return runBake(c.Context(), w, path, args) },
	}
	cli.ConfigFlag(c, &path)
	return c
}

func runBake(ctx context.Context, w cli.World, path string, groups []string) (err error) {
	ctx, stop := cli.UntilSignal(ctx)
	defer stop()
	cfg, err := config.Load(path, w.Lookup)
	if err != nil {
		return err
	}
	known := strings.Join(slices.Sorted(maps.Keys(cfg.Bake)), ", ")
	if known == "" {
		return errors.New("no groups are configured: add one under `bake` in the configuration")
	}
	if len(groups) == 0 {
		return cli.Usage(fmt.Errorf("name the groups to bake: %s", known))
	}
	for _, g := range groups {
		if _, ok := cfg.Bake[g]; !ok {
			return fmt.Errorf("bake %s: %w; configured groups: %s", g, bake.ErrUnknownGroup, known)
		}
	}
	log := zerolog.New(zerolog.ConsoleWriter{
		Out:        w.Err,
		NoColor:    true,
		TimeFormat: time.TimeOnly,
	}).Level(zerolog.InfoLevel).With().Timestamp().Logger()
	tools, err := server.OpenTools(ctx, cfg, server.Options{Log: log, Version: builtFrom().version, BinDir: w.BinDir})
	if errors.Is(err, server.ErrServing) {
		return askServing(ctx, w, cfg, groups)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tools.Close()) }()
	for _, g := range groups {
		img, err := tools.Bake(ctx, g)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w.Out, "%s: image %s of %.1f GB is available.\n", g, img.ID, float64(img.StoredMB)/1000); err != nil {
			return err
		}
	}
	return nil
}

// askServing asks the running errand to bake the images and waits.
func askServing(ctx context.Context, w cli.World, cfg config.Config, groups []string) error {
	wait := func(ctx context.Context, d time.Duration) error {
		if clock.Sleep(ctx, d) != nil {
			return errors.New("stopped waiting; errand continues baking")
		}
		return nil
	}
	for _, g := range groups {
		if _, err := fmt.Fprintf(w.Out, "%s: the running errand bakes it; its log shows the progress.\n", g); err != nil {
			return err
		}
		r, err := bake.Ask(ctx, server.AskedDir(cfg), g, rand.Text(), wait)
		if err != nil {
			return err
		}
		if r.Error != "" {
			return errors.New(r.Error)
		}
		if _, err := fmt.Fprintf(w.Out, "%s: image %s is available.\n", g, r.Image); err != nil {
			return err
		}
	}
	return nil
}
