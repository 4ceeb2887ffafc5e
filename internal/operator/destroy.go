package operator

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/errand-bot/errand/internal/cli"
	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/logview"
	"github.com/errand-bot/errand/internal/selfclient"
)

// destroyCommand deletes the VMs of tasks.
func destroyCommand(w cli.World) *cobra.Command {
	var path string
	var yes, force, asJSON bool
	c := &cobra.Command{
		Use:   "destroy OWNER/REPO#N …",
		Short: "Delete the VM and the saved work of tasks now; the tasks continue on new VMs",
		Long: "Delete the VM of each task, and the work that was saved from it, now. `errand stop` and `errand cancel` keep the work for a while.\n" +
			"Changes and commits that are not published, the agent's session and cached folders are lost. What is published, plans and the\n" +
			"conversation stay, and the task continues from them on a new VM when it needs one. While an agent works, the command is refused:\n" +
			"stop the task first, or add --force, which stops it. errand has to be running; the command reaches it at admin.listen or listen.",
		Args: tasksOnly,
		RunE: func(c *cobra.Command, tasks []string) error {
			cfg, err := config.Load(path, w.Lookup)
			if err != nil {
				return err
			}
			question := fmt.Sprintf("Delete the VM and the saved work of %s? Work that is not published is lost.", strings.Join(tasks, ", "))
			if err := confirmed(w, yes, question); err != nil {
				return err
			}
			return destroyAll(c.Context(), w, cfg, tasks, force, asJSON)
		},
	}
	cli.ConfigFlag(c, &path)
	c.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	c.Flags().BoolVar(&force, "force", false, "also while an agent works: stop it")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON, one object per task")
	return c
}

// destroyAll deletes the VMs of tasks, one after the other. A refusal does not affect the others.
func destroyAll(ctx context.Context, w cli.World, cfg config.Config, tasks []string, force, asJSON bool) error {
	ctx, stop := cli.UntilSignal(ctx)
	defer stop()
	failed := 0
	for _, task := range tasks {
		body, err := destroyOne(ctx, cfg, task, force)
		var refused refusedError
		if errors.As(err, &refused) {
			failed++
			_, _ = fmt.Fprintf(w.Err, "%s: refused: %s\n", task, logview.OneLine(refused.Error()))
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", task, err)
		}
		if asJSON {
			err = cli.PrintJSON(w.Out, body)
		} else {
			err = printDestroyed(w, task, body)
		}
		if err != nil {
			return err
		}
	}
	if failed > 0 {
		return fmt.Errorf("refused for %d of %d tasks", failed, len(tasks))
	}
	return nil
}

func printDestroyed(w cli.World, task string, body []byte) error {
	var done struct{ Result string }
	if err := json.Unmarshal(body, &done); err != nil {
		return fmt.Errorf("read errand's answer: %w", err)
	}
	_, err := fmt.Fprintf(w.Out, "%s: %s\n", task, logview.Plain(logview.OneLine(done.Result)))
	return err
}

// destroyOne deletes the VM of one task and returns errand's answer.
func destroyOne(ctx context.Context, cfg config.Config, task string, force bool) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, actTimeout)
	defer cancel()
	repo, number, _ := strings.Cut(task, "#")
	form := url.Values{"id": {rand.Text()}}
	if force {
		form.Set("force", "true")
	}
	a, err := selfclient.Send(ctx, cfg, "/tasks/"+repo+"/"+number+"/actions/destroy", form)
	switch {
	case errors.Is(err, selfclient.ErrNotRunning):
		return nil, fmt.Errorf("%w\nStart it with `errand serve`, and use its configuration with -c", err)
	case err != nil:
		return nil, err
	case a.Status == http.StatusOK:
		return a.Body, nil
	case a.Status == http.StatusConflict, a.Status == http.StatusNotFound && strings.HasPrefix(a.Text(), selfclient.NoTask):
		return nil, refusedError(a.Text())
	}
	return nil, a.Unexpected()
}
