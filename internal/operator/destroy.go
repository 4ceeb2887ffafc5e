package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/errand-bot/errand/internal/cli"
	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/logview"
)

// destroyCommand deletes the VMs of tasks.
func destroyCommand(w cli.World) *cobra.Command {
	var path string
	var yes, force bool
	o := order{notDone: "refused"}
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
			if err := confirmed(c.Context(), w, yes, question); err != nil {
				return err
			}
			o.do = func(ctx context.Context, task string) (string, error) {
				form := url.Values{}
				if force {
					form.Set("force", "true")
				}
				a, err := post(ctx, orderTimeout, cfg, pageOf(task, "actions/destroy"), form)
				if err == nil {
					err = a.CheckJSON("result")
				}
				if err != nil {
					return "", err
				}
				return o.destroyed(task, a.Body)
			}
			return o.each(c.Context(), w, tasks)
		},
	}
	cli.ConfigFlag(c, &path)
	c.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	c.Flags().BoolVar(&force, "force", false, "also while an agent works: stop it")
	c.Flags().BoolVar(&o.asJSON, "json", false, "print JSON, one object per task")
	return c
}

// destroyed returns errand's answer about a task, or one line of it for people.
func (o order) destroyed(task string, body []byte) (string, error) {
	if o.asJSON {
		return string(logview.PlainJSON(body)), nil
	}
	var done struct{ Result string }
	if err := json.Unmarshal(body, &done); err != nil {
		return "", fmt.Errorf("read errand's answer: %w", err)
	}
	return o.line(task, done.Result), nil
}
