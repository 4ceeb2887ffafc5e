package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/errand-bot/errand/internal/cli"
	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/selfclient"
)

// adoptCommand starts the tasks of issues that had a trigger before errand watched for it.
func adoptCommand(w cli.World) *cobra.Command {
	var path string
	c := &cobra.Command{
		Use:   "adopt OWNER/REPO#N …",
		Short: "Start the tasks of issues that already had the label or assignee",
		Long: "Start the tasks of issues that had errand's label or assignee before errand was installed or configured for it. The\n" +
			"board lists them under “Not started”. The trigger counts as if it had been set now by the person who set it, who\n" +
			"needs write access. errand has to be running; the command reaches it at admin.listen or listen.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Usage(errors.New("adopt takes issues, as OWNER/REPO#N"))
			}
			for _, a := range args {
				if !cli.TaskName.MatchString(a) {
					return cli.Usage(fmt.Errorf("adopt takes issues, as OWNER/REPO#N, but got %q", a))
				}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			cfg, err := config.Load(path, w.Lookup)
			if err != nil {
				return err
			}
			return adopt(c.Context(), w, cfg, args)
		},
	}
	cli.ConfigFlag(c, &path)
	return c
}

// adopt asks the running errand to adopt issues, one after the other. A refusal does not affect the others.
func adopt(ctx context.Context, w cli.World, cfg config.Config, issues []string) error {
	ctx, stop := cli.UntilSignal(ctx)
	defer stop()
	failed := 0
	for _, issue := range issues {
		who, err := adoptOne(ctx, cfg, issue)
		var refused refusedError
		if errors.As(err, &refused) {
			failed++
			_, _ = fmt.Fprintf(w.Err, "%s: not started: %v\n", issue, err)
			continue
		}
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w.Out, "started: %s\n", who); err != nil {
			return err
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d issues were not started", failed, len(issues))
	}
	return nil
}

// refusedError is errand's reason for not starting a task.
type refusedError string

func (e refusedError) Error() string { return string(e) }

// adoptTimeout is the timeout for one issue, a little longer than errand's own.
const adoptTimeout = 70 * time.Second

// adoptOne asks the running errand to adopt one issue, and returns who set its trigger.
func adoptOne(ctx context.Context, cfg config.Config, issue string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, adoptTimeout)
	defer cancel()
	repo, number, _ := strings.Cut(issue, "#")
	a, err := selfclient.Ask(ctx, cfg, http.MethodPost, "/tasks/"+repo+"/"+number+"/adopt")
	switch {
	case errors.Is(err, selfclient.ErrNotRunning):
		return "", fmt.Errorf("%w\nStart it with `errand serve`, and use its configuration with -c", err)
	case err != nil:
		return "", err
	case a.Status == http.StatusOK:
		return a.Text(), nil
	case a.Status == http.StatusConflict, a.Status == http.StatusBadGateway:
		return "", refusedError(a.Text())
	}
	return "", a.Unexpected()
}
