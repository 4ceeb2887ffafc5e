package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/spf13/cobra"

	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/logview"
)

// logsFlags are what logs is told.
type logsFlags struct {
	path, data, level string
	run               int
	since             time.Duration
	events, follow    bool
	summary           bool
}

var taskName = regexp.MustCompile(`^[A-Za-z0-9-]+/[A-Za-z0-9._-]+#[1-9][0-9]*$`)

// logsCommand shows what a task's agents said and did.
func logsCommand(w world) *cobra.Command {
	var f logsFlags
	c := &cobra.Command{
		Use:   "logs OWNER/REPO#N",
		Short: "Show what the agents of an issue's task said and did",
		Long: "Show the transcripts of a task's runs, from the files in errand's data folder: beside a running errand, or after it.\n" +
			"Times are those of UTC. The repository is named as it was called when the run began. Long texts are cut; the files\n" +
			"in transcripts/ have all of them.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || !taskName.MatchString(args[0]) {
				return errUsage{fmt.Errorf("logs takes one issue, as OWNER/REPO#N, but got %q", args)}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return f.show(c.Context(), w, args[0]) },
	}
	configFlag(c, &f.path)
	c.Flags().StringVar(&f.data, "data", "", "the data folder; the one in the configuration unless set")
	c.Flags().StringVar(&f.level, "level", "info", "what matters less is left out: debug, info, warn or error")
	c.Flags().IntVar(&f.run, "run", 0, "the number of one run; 0 shows all")
	c.Flags().DurationVar(&f.since, "since", 0, "only what is younger, such as 10m; 0 shows all")
	c.Flags().BoolVar(&f.events, "events", false, "print each event as a line of JSON")
	c.Flags().BoolVar(&f.summary, "summary", false, "show what the task came to instead: phases, verdicts, and what each step took")
	c.Flags().BoolVarP(&f.follow, "follow", "f", false, "go on with what comes, until Ctrl-C")
	return c
}

func (f *logsFlags) show(ctx context.Context, w world, task string) error {
	if f.summary && f.follow {
		return errUsage{errors.New("--summary shows what there is; leave out --follow")}
	}
	level, err := logview.ParseLevel(f.level)
	if err != nil {
		return errUsage{err}
	}
	if f.data == "" {
		cfg, err := config.Load(f.path, w.env)
		if err != nil {
			return fmt.Errorf("%w\nOr name the data folder with --data", err)
		}
		f.data = cfg.Data
	}
	q := logview.Query{Dir: f.data, Task: task, Run: f.run, Level: level, Events: f.events, Follow: f.follow}
	if f.summary {
		return logview.Summaries(w.out, q)
	}
	if f.since > 0 {
		q.Since = time.Now().Add(-f.since)
	}
	ctx, stop := untilSignal(ctx)
	defer stop()
	return logview.Show(ctx, w.out, q)
}
