package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/errand-bot/errand/internal/cli"
	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/server"
)

// serveCommand runs the service. The first SIGINT or SIGTERM ends it gracefully; a second one ends it immediately.
// Neither loses data.
func serveCommand(w cli.World) *cobra.Command {
	var path string
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run the service until SIGINT or SIGTERM",
		Args:  cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, stop := cli.UntilSignal(c.Context())
			defer stop()
			cfg, err := config.Load(path, w.Lookup)
			if err != nil {
				return err
			}
			log := logger(cfg.Log, w.Err)
			if whole, err := filepath.Abs(path); err == nil {
				log.Info().Str("config", whole).Msg("configuration loaded")
			}
			return serve(ctx, cfg, server.Options{Log: log, InContainer: inContainer(w)})
		},
	}
	cli.ConfigFlag(c, &path)
	return c
}

// serve creates the server and runs it until ctx ends.
func serve(ctx context.Context, cfg config.Config, opts server.Options) (err error) {
	log := opts.Log
	ln, err := inheritedListener()
	if err != nil {
		return err
	}
	opts.Version, opts.Listener = builtFrom().version, ln
	s, err := server.New(ctx, cfg, opts)
	if err != nil {
		return err
	}
	if ln != nil && !listensAt(ln, cfg.Listen) {
		log.Warn().Str("socket", ln.Addr().String()).Str("listen", cfg.Listen).
			Msg("the socket of the service manager has another address than listen, at which errand's commands look for it")
	}
	defer func() {
		if cerr := s.Close(); cerr != nil {
			err = errors.Join(err, fmt.Errorf("close: %w", cerr))
		}
	}()
	log.Info().Str("version", builtFrom().version).Str("listen", s.Addr().String()).Str("data", cfg.Data).Str("provider", cfg.Provider).Msg("errand started")
	err = s.Run(ctx)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = nil // the requested end
	}
	if err == nil {
		log.Info().Msg("errand stopped")
	}
	return err
}

// logger returns the configured log. Validate has checked the level.
func logger(c config.Log, to io.Writer) zerolog.Logger {
	if c.Format == "console" {
		to = zerolog.ConsoleWriter{Out: to, TimeFormat: time.TimeOnly}
	}
	level, err := zerolog.ParseLevel(c.Level)
	if err != nil {
		level = zerolog.InfoLevel
	}
	return zerolog.New(to).Level(level).With().Timestamp().Logger()
}
