package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/errand-bot/errand/internal/cli"
	commands "github.com/errand-bot/errand/internal/comment/command"
	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/logview"
	"github.com/errand-bot/errand/internal/selfclient"
	"github.com/errand-bot/errand/state"
)

const throughErrand = "\nThe same rules apply as to the command in a comment, but the operator needs no GitHub account. errand has to be running; the\n" +
	"command reaches it at admin.listen or listen. It is recorded in the audit log: see `errand audit`."

// actionCommands give commands to tasks, like those in comments.
func actionCommands(w cli.World) []*cobra.Command {
	none := func() string { return "" }
	stop := &cobra.Command{Use: "stop OWNER/REPO#N …", Short: "Stop a task's running agent, keep its work, and wait for `errand retry`"}
	retry := &cobra.Command{Use: "retry OWNER/REPO#N …", Short: "Continue a task after a failure, a stop or a cancellation, or check whether a waiting task can continue"}
	cancel := &cobra.Command{Use: "cancel OWNER/REPO#N …", Short: "End a task; published commits and pull requests stay"}
	restart := &cobra.Command{Use: "restart OWNER/REPO#N …", Short: "Begin a task again from its issue, and close its pull request"}
	budget := &cobra.Command{Use: "budget OWNER/REPO#N ADDITION", Short: "Raise a task's limit on cost (+5), tokens (+500k tokens) or VM hours (+12h)"}
	var fresh bool
	var turns int
	retry.Flags().BoolVar(&fresh, "fresh", false, "on a new VM, without unpublished work")
	retry.Flags().IntVar(&turns, "turns", 0, "maximum number of turns of the next run; 0 keeps the limit")
	gives(stop, w, state.VerbStop, none)
	gives(cancel, w, state.VerbCancel, none)
	gives(restart, w, state.VerbRestart, none)
	gives(budget, w, state.VerbBudget, nil)
	gives(retry, w, state.VerbRetry, func() string {
		args := ""
		if fresh {
			args = "fresh"
		}
		if turns != 0 {
			args += fmt.Sprintf(" turns=%d", turns)
		}
		return args
	})
	return []*cobra.Command{stop, retry, cancel, restart, budget}
}

// gives completes the command that gives a verb to tasks, with the arguments that flags returns. If flags is nil, they follow the only
// task.
func gives(c *cobra.Command, w cli.World, verb state.Verb, flags func() string) {
	var path string
	o := order{notDone: "refused"}
	c.Long = c.Short + "." + throughErrand
	c.RunE = func(c *cobra.Command, tasks []string) error {
		words := ""
		switch {
		case flags != nil:
			words = flags()
		case len(tasks) > 1:
			tasks, words = tasks[:1], strings.Join(tasks[1:], " ")
		}
		if err := tasksOnly(c, tasks); err != nil {
			return err
		}
		if _, err := commands.Read(verb, words); err != nil {
			return cli.Usage(err)
		}
		cfg, err := config.Load(path, w.Lookup)
		if err != nil {
			return err
		}
		o.do = func(ctx context.Context, task string) (string, error) {
			a, err := post(ctx, orderTimeout, cfg, pageOf(task, "actions/"+string(verb)), url.Values{"args": {words}})
			return o.line(task, a.Text()), err
		}
		return o.each(c.Context(), w, tasks)
	}
	cli.ConfigFlag(c, &path)
	c.Flags().BoolVar(&o.asJSON, "json", false, "print JSON, one object per task")
}

// auditCommand lists what operators did.
func auditCommand(w cli.World) *cobra.Command {
	var path string
	var asJSON bool
	c := &cobra.Command{
		Use:   "audit [OWNER/REPO#N]",
		Short: "List the latest actions of operators, of one task or of all",
		Long: "List the latest 500 actions of operators: those of `errand cancel` and the like, and those on the pages. They are kept for 400\n" +
			"days. errand has to be running; the command reaches it at admin.listen or listen.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 || len(args) == 1 && !cli.TaskName.MatchString(args[0]) {
				return cli.Usage(fmt.Errorf("audit takes one task at most, as OWNER/REPO#N, but got %q", args))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			cfg, err := config.Load(path, w.Lookup)
			if err != nil {
				return err
			}
			query := ""
			if len(args) == 1 {
				query = "?task=" + url.QueryEscape(args[0])
			}
			return audit(c.Context(), w, cfg, query, asJSON)
		},
	}
	cli.ConfigFlag(c, &path)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func audit(ctx context.Context, w cli.World, cfg config.Config, query string, asJSON bool) error {
	body, err := selfclient.GetJSON(ctx, cfg, "/audit.json"+query, "actions")
	if err != nil {
		return err
	}
	if asJSON {
		return cli.PrintJSON(w.Out, body)
	}
	var log struct {
		Actions []struct {
			At                                 time.Time
			By, From, Subject, Command, Result string
			Refused                            bool
		}
	}
	if err := json.Unmarshal(body, &log); err != nil {
		return fmt.Errorf("read errand's answer: %w", err)
	}
	var s strings.Builder
	t := tabwriter.NewWriter(&s, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "TIME (UTC)\tOPERATOR\tSUBJECT\tCOMMAND\tRESULT") // a strings.Builder has no errors
	for _, l := range log.Actions {
		if l.Refused {
			l.Result = "refused: " + l.Result
		}
		by := l.By
		if l.From != "" {
			by += " from " + l.From
		}
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", l.At.UTC().Format(time.DateTime), by, l.Subject, l.Command, logview.OneLine(l.Result))
	}
	_ = t.Flush()
	if len(log.Actions) == 0 {
		s.Reset()
		s.WriteString("No operator has done anything yet.\n")
	}
	_, err = io.WriteString(w.Out, logview.Plain(s.String()))
	return err
}
