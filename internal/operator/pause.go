package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/errand-bot/errand/internal/cli"
	"github.com/errand-bot/errand/internal/clock"
	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/logview"
	"github.com/errand-bot/errand/internal/selfclient"
	"github.com/errand-bot/errand/internal/words"
)

const whilePaused = "While errand is paused, no new run starts and no VM is created. Agents that work go on to their end, finished work is published, and\n" +
	"everything that people do on GitHub is applied: nothing is lost. A task that would start a run waits and says so. A pause lasts until\n" +
	"`errand resume`, also if errand is restarted. errand has to be running; the command is recorded in the audit log: see `errand audit`."

// pauseCommands pause and resume work.
func pauseCommands(w cli.World) []*cobra.Command {
	var reason string
	var all bool
	pause := &cobra.Command{
		Use: "pause [OWNER/REPO …]", Short: "Start no new runs and VMs, in repositories or at all, until `errand resume`",
		Long: "Start no new runs and VMs: in the repositories, or at all if none is named.\n\n" + whilePaused,
	}
	resume := &cobra.Command{
		Use: "resume [OWNER/REPO …]", Short: "End a pause; the tasks that waited continue at once",
		Long: "End the pause of the repositories, or that of everything if none is named. Repositories that were paused by their names stay paused,\n" +
			"unless --all is given. The tasks that waited continue at once, in the order in which they began to wait.",
	}
	pause.Flags().StringVar(&reason, "reason", "", "why; shown in status comments, in the pages and in the audit log")
	resume.Flags().BoolVar(&all, "all", false, "also end the pauses of single repositories")
	ordersPause(pause, w, func() url.Values { return url.Values{"reason": {reason}} })
	ordersPause(resume, w, func() url.Values {
		if all {
			return url.Values{"all": {"true"}}
		}
		return url.Values{}
	})
	return []*cobra.Command{pause, resume, drainCommand(w)}
}

// ordersPause completes the command that sends an order for repositories, or for everything.
func ordersPause(c *cobra.Command, w cli.World, form func() url.Values) {
	var path string
	o := order{notDone: "refused"}
	c.RunE = func(c *cobra.Command, repos []string) error {
		for _, r := range repos {
			if !cli.RepoName.MatchString(r) {
				return cli.Usage(fmt.Errorf("%s takes repositories as OWNER/REPO, but got %q", c.Name(), r))
			}
		}
		if form().Has("all") && len(repos) > 0 {
			return cli.Usage(errors.New("--all cannot be used with names of repositories"))
		}
		cfg, err := config.Load(path, w.Lookup)
		if err != nil {
			return err
		}
		return o.pause(c.Context(), w, cfg, "/"+c.Name(), repos, form())
	}
	cli.ConfigFlag(c, &path)
	c.Flags().BoolVar(&o.asJSON, "json", false, "print JSON, one object per repository")
}

// everything is the subject of an order that names no repository.
const everything = "errand"

// pause sends an order for each repository, or for everything, and prints the results.
func (o order) pause(ctx context.Context, w cli.World, cfg config.Config, path string, repos []string, form url.Values) error {
	if len(repos) == 0 {
		repos = []string{everything}
	}
	o.do = func(ctx context.Context, repo string) (string, error) {
		if form.Set("repo", repo); repo == everything {
			form.Set("repo", "")
		}
		a, err := post(ctx, orderTimeout, cfg, path, form)
		return o.line(repo, a.Text()), err
	}
	return o.each(ctx, w, repos)
}

// drain is the command drain.
type drain struct {
	path, reason string
	timeout      time.Duration
	every        time.Duration // between two looks
}

const (
	drainTimeout = 30 * time.Minute
	drainEvery   = 2 * time.Second
)

// drainCommand pauses everything and waits until nothing is under way.
func drainCommand(w cli.World) *cobra.Command {
	d := drain{every: drainEvery}
	c := &cobra.Command{
		Use: "drain", Short: "Pause everything, and wait until no agent works and nothing is being published",
		Long: "Pause everything, and wait until no agent works, no work is being saved and nothing is being published: then errand can be stopped for\n" +
			"maintenance without interrupting anybody. The pause stays in effect, also after a timeout (exit code 1) or Ctrl-C.\n\n" + whilePaused,
		Args: cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if d.timeout <= 0 {
				return cli.Usage(errors.New("--timeout must be positive"))
			}
			cfg, err := config.Load(d.path, w.Lookup)
			if err != nil {
				return err
			}
			ctx, stop := cli.UntilSignal(c.Context())
			defer stop()
			return d.run(ctx, w, cfg)
		},
	}
	cli.ConfigFlag(c, &d.path)
	c.Flags().DurationVar(&d.timeout, "timeout", drainTimeout, "how long to wait")
	c.Flags().StringVar(&d.reason, "reason", "", "why; shown in status comments, in the pages and in the audit log")
	return c
}

// stillPaused ends the messages about a drain that did not reach its end.
const stillPaused = "errand stays paused: no new run starts until `errand resume`."

func (d drain) run(ctx context.Context, w cli.World, cfg config.Config) error {
	if err := (order{notDone: "refused"}).pause(ctx, w, cfg, "/pause", nil, url.Values{"reason": {d.reason}}); err != nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	shown := "  not known: errand has not answered\n"
	for {
		p, err := readPause(within, cfg)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("stopped waiting. %s", stillPaused)
		case within.Err() != nil:
			return fmt.Errorf("after %s this is still under way:\n%s%s `errand drain` waits again, `errand stop OWNER/REPO#N` stops an agent and keeps its work", words.Span(d.timeout), shown, stillPaused)
		case errors.Is(err, selfclient.ErrNotRunning), errors.Is(err, selfclient.ErrNoAnswer): // errand may be restarting
			p.UnderWay = append(p.UnderWay, workEntry{Doing: "errand does not answer"})
		case err != nil:
			return fmt.Errorf("%w\n%s", err, stillPaused)
		case !p.all():
			return errors.New("somebody resumed errand meanwhile")
		case len(p.UnderWay) == 0:
			_, err = fmt.Fprintln(w.Out, "Drained: no agent works and nothing is being published. errand stays paused until `errand resume`.")
			return err
		}
		if now := p.work(); now != shown {
			shown = now
			if _, err := fmt.Fprintf(w.Out, "Waiting for:\n%s", shown); err != nil {
				return err
			}
		}
		_ = clock.Sleep(within, d.every) // if it is cut short, the next request says why
	}
}

// pauseState is errand's answer about pauses.
type pauseState struct {
	Paused   []struct{ Repo int64 }
	UnderWay []workEntry `json:"under_way"`
}

// workEntry is something that is under way: of a task, or of none.
type workEntry struct{ Task, Doing string }

// all reports whether everything is paused.
func (p pauseState) all() bool {
	for _, one := range p.Paused {
		if one.Repo == 0 {
			return true
		}
	}
	return false
}

// work lists the work that is under way, a line each.
func (p pauseState) work() string {
	var s strings.Builder
	for _, u := range p.UnderWay {
		if u.Task != "" {
			fmt.Fprintf(&s, "  %s: %s\n", logview.OneLine(u.Task), logview.OneLine(u.Doing))
			continue
		}
		fmt.Fprintf(&s, "  %s\n", logview.OneLine(u.Doing))
	}
	return s.String()
}

func readPause(ctx context.Context, cfg config.Config) (p pauseState, err error) {
	body, err := selfclient.GetJSON(ctx, cfg, "/pause.json", "paused", "under_way")
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal(body, &p); err != nil {
		return p, fmt.Errorf("read errand's answer: %w", err)
	}
	return p, nil
}

// pausedLine describes the pauses for `errand status`.
func pausedLine(list []pausedEntry, now time.Time) string {
	var s strings.Builder
	for _, p := range list {
		name, resume := p.Name, "errand resume "+p.Name
		if p.Repo == 0 {
			name, resume = "errand", "errand resume"
		}
		fmt.Fprintf(&s, "! %s is paused, for %s by %s", logview.OneLine(name), words.Span(now.Sub(p.Since)), logview.OneLine(p.By))
		if p.Reason != "" {
			s.WriteString(": " + logview.OneLine(p.Reason))
		}
		fmt.Fprintf(&s, " (`%s`)\n", logview.OneLine(resume))
	}
	return s.String()
}

// pausedEntry is a pause in status.json.
type pausedEntry struct {
	Repo             int64
	Name, By, Reason string
	Since            time.Time
}
