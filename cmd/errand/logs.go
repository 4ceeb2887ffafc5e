package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"github.com/errand-bot/errand/internal/cli"
	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/logview"
)

// logsFlags are the flags of logs.
type logsFlags struct {
	path, data, level string
	run               int
	since             time.Duration
	events, follow    bool
	summary           bool
}

// logsCommand prints the transcripts of a task's runs.
func logsCommand(w cli.World) *cobra.Command {
	var f logsFlags
	c := &cobra.Command{
		Use:   "logs OWNER/REPO#N",
		Short: "Show the transcripts of an issue's task",
		Long: "Show the transcripts of a task's runs from the files in errand's data folder; errand need not be running.\n" +
			"It also continues while errand restarts. Times are in UTC. Use the repository's name at the time of the run. Long texts are cut; the files in\n" +
			"transcripts/ have the full texts.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || !cli.TaskName.MatchString(args[0]) {
				return cli.Usage(fmt.Errorf("logs takes one issue, as OWNER/REPO#N, but got %q", args))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return f.show(c.Context(), w, args[0]) },
	}
	cli.ConfigFlag(c, &f.path)
	c.Flags().StringVar(&f.data, "data", "", "data folder; by default the one in the configuration")
	c.Flags().StringVar(&f.level, "level", "info", "minimum level: debug, info, warn or error")
	c.Flags().IntVar(&f.run, "run", 0, "number of a single run; 0 shows all")
	c.Flags().DurationVar(&f.since, "since", 0, "only events newer than this, such as 10m; 0 shows all")
	c.Flags().BoolVar(&f.events, "events", false, "print events as JSON, one per line")
	c.Flags().BoolVar(&f.summary, "summary", false, "show the task's summary instead: phases, verdicts, and the totals of each step")
	c.Flags().BoolVarP(&f.follow, "follow", "f", false, "keep showing new events, until the task or the run of --run ends, or Ctrl-C")
	return c
}

func (f *logsFlags) show(ctx context.Context, w cli.World, task string) error {
	if f.summary && f.follow {
		return cli.Usage(errors.New("--summary cannot be used with --follow"))
	}
	level, err := logview.ParseLevel(f.level)
	if err != nil {
		return cli.Usage(err)
	}
	if f.data == "" {
		cfg, err := config.Load(f.path, w.Lookup)
		if err != nil {
			return fmt.Errorf("%w\nAlternatively set the data folder with --data", err)
		}
		f.data = cfg.Data
	}
	q := logview.Query{Dir: f.data, Task: task, Run: f.run, Level: level, Events: f.events, Follow: f.follow, Notes: w.Err}
	if f.summary {
		return readable(logview.Summaries(w.Out, q))
	}
	if f.since > 0 {
		q.Since = time.Now().Add(-f.since)
	}
	ctx, stop := cli.UntilSignal(ctx)
	defer stop()
	return readable(logview.Show(ctx, w.Out, q))
}

// readable adds to an error that the files belong to another user how to read them.
func readable(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w\nRun this as the user that runs errand: `sudo -u errand errand logs …`", err)
	}
	return err
}
