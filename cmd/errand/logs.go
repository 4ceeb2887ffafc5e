package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"time"

	"github.com/spf13/cobra"

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

var taskName = regexp.MustCompile(`^[A-Za-z0-9-]+/[A-Za-z0-9._-]+#[1-9][0-9]*$`)

// logsCommand prints the transcripts of a task's runs.
func logsCommand(w world) *cobra.Command {
	var f logsFlags
	c := &cobra.Command{
		Use:   "logs OWNER/REPO#N",
		Short: "Show the transcripts of an issue's task",
		Long: "Show the transcripts of a task's runs from the files in errand's data folder; errand need not be running.\n" +
			"It also continues while errand restarts. Times are in UTC. Use the repository's name at the time of the run. Long texts are cut; the files in\n" +
			"transcripts/ have the full texts.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || !taskName.MatchString(args[0]) {
				return errUsage{fmt.Errorf("logs takes one issue, as OWNER/REPO#N, but got %q", args)}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return f.show(c.Context(), w, args[0]) },
	}
	configFlag(c, &f.path)
	c.Flags().StringVar(&f.data, "data", "", "data folder; by default the one in the configuration")
	c.Flags().StringVar(&f.level, "level", "info", "minimum level: debug, info, warn or error")
	c.Flags().IntVar(&f.run, "run", 0, "number of a single run; 0 shows all")
	c.Flags().DurationVar(&f.since, "since", 0, "only events newer than this, such as 10m; 0 shows all")
	c.Flags().BoolVar(&f.events, "events", false, "print events as JSON, one per line")
	c.Flags().BoolVar(&f.summary, "summary", false, "show the task's summary instead: phases, verdicts, and the totals of each step")
	c.Flags().BoolVarP(&f.follow, "follow", "f", false, "keep showing new events, until the task or the run of --run ends, or Ctrl-C")
	return c
}

func (f *logsFlags) show(ctx context.Context, w world, task string) error {
	if f.summary && f.follow {
		return errUsage{errors.New("--summary cannot be used with --follow")}
	}
	level, err := logview.ParseLevel(f.level)
	if err != nil {
		return errUsage{err}
	}
	if f.data == "" {
		cfg, err := config.Load(f.path, w.env)
		if err != nil {
			return fmt.Errorf("%w\nAlternatively set the data folder with --data", err)
		}
		f.data = cfg.Data
	}
	q := logview.Query{Dir: f.data, Task: task, Run: f.run, Level: level, Events: f.events, Follow: f.follow, Notes: w.err}
	if f.summary {
		return readable(logview.Summaries(w.out, q))
	}
	if f.since > 0 {
		q.Since = time.Now().Add(-f.since)
	}
	ctx, stop := untilSignal(ctx)
	defer stop()
	return readable(logview.Show(ctx, w.out, q))
}

// readable adds to an error that the files belong to another user how to read them.
func readable(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w\nRun this as the user that runs errand: `sudo -u errand errand logs …`", err)
	}
	return err
}
