package operator

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/errand-bot/errand/internal/cli"
	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/logview"
	"github.com/errand-bot/errand/internal/selfclient"
	"github.com/errand-bot/errand/internal/setup"
	"github.com/errand-bot/errand/internal/words"
	"github.com/errand-bot/errand/state/store"
)

// purgeTimeout is the timeout for one task, a little longer than errand's own.
const purgeTimeout = 5*time.Minute + 10*time.Second

// purgeCommand deletes the texts of ended tasks.
func purgeCommand(w cli.World) *cobra.Command {
	var path string
	var yes, asJSON bool
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
			if err := confirmed(w, yes, question); err != nil {
				return err
			}
			return purgeAll(c.Context(), w, cfg, tasks, asJSON)
		},
	}
	cli.ConfigFlag(c, &path)
	c.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON, one object per task")
	return c
}

// tasksOnly requires one or more tasks as arguments.
func tasksOnly(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cli.Usage(fmt.Errorf("%s takes a task, as OWNER/REPO#N", c.Name()))
	}
	for _, t := range args {
		if !cli.TaskName.MatchString(t) {
			return cli.Usage(fmt.Errorf("%s takes tasks as OWNER/REPO#N, but got %q", c.Name(), t))
		}
	}
	return nil
}

// confirmed asks a person a question, unless yes is set. The error says that nothing was done.
func confirmed(w cli.World, yes bool, question string) error {
	if yes {
		return nil
	}
	if !setup.IsTerminal(w.In) {
		return cli.Usage(errors.New("nobody can confirm this here: repeat the command with --yes"))
	}
	_, _ = fmt.Fprintf(w.Err, "%s [y/N] ", question)
	line, err := bufio.NewReader(w.In).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the answer: %w", err)
	}
	if answer := strings.ToLower(strings.TrimSpace(line)); answer != "y" && answer != "yes" {
		return errors.New("nothing was done")
	}
	return nil
}

// purgeAll purges tasks, one after the other. A refusal does not affect the others.
func purgeAll(ctx context.Context, w cli.World, cfg config.Config, tasks []string, asJSON bool) error {
	ctx, stop := cli.UntilSignal(ctx)
	defer stop()
	failed := 0
	for _, task := range tasks {
		body, err := purgeOne(ctx, cfg, task)
		var refused refusedError
		if errors.As(err, &refused) {
			failed++
			_, _ = fmt.Fprintf(w.Err, "%s: not purged: %s\n", task, logview.OneLine(refused.Error()))
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", task, err)
		}
		if asJSON {
			err = cli.PrintJSON(w.Out, body)
		} else {
			err = printPurged(w.Out, task, body, cfg.Backup)
		}
		if err != nil {
			return err
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d tasks were not purged", failed, len(tasks))
	}
	return nil
}

// purgeOne purges one task and returns errand's answer.
func purgeOne(ctx context.Context, cfg config.Config, task string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, purgeTimeout)
	defer cancel()
	repo, number, _ := strings.Cut(task, "#")
	a, err := selfclient.Send(ctx, cfg, "/tasks/"+repo+"/"+number+"/actions/purge", url.Values{"id": {rand.Text()}})
	switch {
	case errors.Is(err, selfclient.ErrNotRunning):
		return nil, fmt.Errorf("%w\nStart it with `errand serve`, and use its configuration with -c", err)
	case err != nil:
		return nil, err
	case a.Status == http.StatusOK:
		return a.Body, nil
	case a.Status == http.StatusConflict, a.Status == http.StatusNotFound && strings.HasPrefix(a.Text(), selfclient.NoTask):
		return nil, refusedError(a.Text())
	case a.Status == http.StatusInternalServerError:
		return nil, errors.New(logview.OneLine(a.Text()))
	}
	return nil, a.Unexpected()
}

// printPurged prints the numbers of deleted items, and the places that may still have texts of the task.
func printPurged(out io.Writer, task string, body []byte, scheduled config.Backup) error {
	var done store.Purged
	if err := json.Unmarshal(body, &done); err != nil {
		return fmt.Errorf("read errand's answer: %w", err)
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
	_, err := io.WriteString(out, logview.Plain(s.String()))
	return err
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
