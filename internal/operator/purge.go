package operator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/errand-bot/errand/internal/cli"
	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/logview"
	"github.com/errand-bot/errand/internal/selfclient"
	"github.com/errand-bot/errand/internal/words"
	"github.com/errand-bot/errand/state/store"
)

// purgeTimeout is the timeout for one task, a little longer than errand's own.
const purgeTimeout = 5*time.Minute + 10*time.Second

// purgeCommand deletes the texts of ended tasks.
func purgeCommand(w cli.World) *cobra.Command {
	var path string
	var yes bool
	o := order{notDone: "not purged"}
	c := &cobra.Command{
		Use:   "purge OWNER/REPO#N …",
		Short: "Delete the texts of ended tasks for good: plans, prompts, transcripts, archives",
		Long: "Delete the texts of ended tasks, for good: the issue's text, comments, plans, prompts,\n" +
			"transcripts, archives, attachments and the hosts that their VMs requested. The store is rewritten, so that nothing is left in its\n" +
			"free space. Costs, times and the audit log stay. Comments on GitHub, backups and errand's log are not touched.\n" +
			"A purged task cannot be continued. An open task has to be canceled first. errand has to be running; the command reaches it at\n" +
			"admin.listen or listen.",
		Args: tasksOnly,
		RunE: func(c *cobra.Command, tasks []string) error {
			cfg, err := config.Load(path, w.Lookup)
			if err != nil {
				return err
			}
			question := fmt.Sprintf("Delete the texts of %s for good? They cannot be restored.", strings.Join(tasks, ", "))
			if err := confirmed(c.Context(), w, yes, question); err != nil {
				return err
			}
			o.do = func(ctx context.Context, task string) (string, error) {
				body, err := purge(ctx, cfg, task)
				if err != nil || o.asJSON {
					return string(logview.PlainJSON(body)), err
				}
				return purged(task, body, cfg.Backup)
			}
			return o.each(c.Context(), w, tasks)
		},
	}
	cli.ConfigFlag(c, &path)
	c.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	c.Flags().BoolVar(&o.asJSON, "json", false, "print JSON, one object per task")
	return c
}

// purge purges one task and returns errand's answer.
func purge(ctx context.Context, cfg config.Config, task string) ([]byte, error) {
	a, err := post(ctx, purgeTimeout, cfg, pageOf(task, "actions/purge"), url.Values{})
	switch {
	case err == nil:
		err = a.CheckJSON("task")
	case a.Status == http.StatusInternalServerError && !errors.Is(err, selfclient.ErrNoAnswer) && a.CheckText() == nil:
		err = errors.New(logview.OneLine(a.Text())) // all of it: what is left, and what to do
	}
	return a.Body, err
}

// purged lists the numbers of deleted items, and the places that may still have texts of the task.
func purged(task string, body []byte, scheduled config.Backup) (string, error) {
	var done store.Purged
	if err := json.Unmarshal(body, &done); err != nil {
		return "", fmt.Errorf("read errand's answer: %w", err)
	}
	var s strings.Builder
	fmt.Fprintf(&s, "%s: purged\n", cmp.Or(done.Task, task))
	if done.Again {
		s.Reset()
		fmt.Fprintf(&s, "%s: purged again\n", cmp.Or(done.Task, task))
	}
	t := cli.NewTable(&s)
	t.Row("  deleted", fmt.Sprintf("%s, %s, %s", words.Many(done.Files, "file"), words.Many(done.Webhooks, "failed webhook"), words.Many(done.Unposted, "unposted comment")))
	t.Row("  store", fmt.Sprintf("rewritten: %d KiB, before %d KiB", done.StoreAfter>>10, done.StoreBefore>>10))
	t.Row("  backups", backupsLeft(done, scheduled))
	for _, dir := range done.Copies {
		t.Row("  copy", dir+" has the data from before a restoration: delete it if you do not need it")
	}
	t.Row("  GitHub", "comments and pull requests stay there: delete them there")
	t.Row("  log", "errand's own log, and what other tasks have read of this one, stay")
	t.Flush()
	return logview.Plain(s.String()), nil
}

// backupsLeft says which backups may have the texts, and for how long.
func backupsLeft(done store.Purged, scheduled config.Backup) string {
	if done.Backups == 0 {
		return "errand has made none since the task began; those that were made while it was stopped may have the texts"
	}
	left := fmt.Sprintf("%s may have the texts, the newest of %s UTC, until they are deleted", words.Many(done.Backups, "backup"), cli.Minute(done.LastBackup))
	if scheduled.Folder == "" {
		return left
	}
	after := done.LastBackup.Add(time.Duration(scheduled.Keep) * scheduled.Every)
	return fmt.Sprintf("%s: those in %s by errand after about %s, the others by you", left, scheduled.Folder, after.UTC().Format(time.DateOnly))
}
