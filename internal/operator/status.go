package operator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/errand-bot/errand/internal/cli"
	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/logview"
	"github.com/errand-bot/errand/internal/selfclient"
	"github.com/errand-bot/errand/internal/words"
)

// statusFlags are the flags of status.
type statusFlags struct {
	path   string
	asJSON bool
	watch  bool
}

const (
	watchEvery = 5 * time.Second
	maxTasks   = 500 // that are listed
)

// statusCommand lists the open tasks.
func statusCommand(w cli.World) *cobra.Command {
	var f statusFlags
	c := &cobra.Command{
		Use:   "status",
		Short: "List the open tasks, the costs and the problems of the running errand",
		Args:  cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if f.asJSON && f.watch {
				return cli.Usage(errors.New("--json cannot be used with --watch"))
			}
			ctx, stop := cli.UntilSignal(c.Context())
			defer stop()
			cfg, err := config.Load(f.path, w.Lookup)
			if err != nil {
				return err
			}
			return f.run(ctx, w, cfg)
		},
	}
	cli.ConfigFlag(c, &f.path)
	c.Flags().BoolVar(&f.asJSON, "json", false, "print JSON: the data of the page /status, with at most 500 open tasks")
	c.Flags().BoolVarP(&f.watch, "watch", "w", false, "show it again every five seconds until Ctrl-C, also while errand restarts; without a terminal only after a change")
	return c
}

// boardPath is the path of the report.
var boardPath = fmt.Sprintf("/status.json?offset=0&limit=%d", maxTasks)

// boardFields are fields that every report has.
var boardFields = []string{"version", "at", "open"}

func (f statusFlags) run(ctx context.Context, w cli.World, cfg config.Config) error {
	if f.watch {
		return (&watcher{out: w.Out, size: cli.TerminalSize(w.Out), every: watchEvery}).watch(ctx, cfg)
	}
	if f.asJSON {
		body, err := selfclient.GetJSON(ctx, cfg, boardPath, boardFields...)
		if err != nil {
			return err
		}
		return cli.PrintJSON(w.Out, body)
	}
	b, err := readBoard(ctx, cfg)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w.Out, b.text(0))
	return err
}

// board is the part of status.json that is printed.
type board struct {
	Version string
	At      time.Time
	Money   *struct {
		TodayWords string  `json:"today_words"`
		MonthWords string  `json:"month_words"`
		DayCap     float64 `json:"day_cap"`
		MonthCap   float64 `json:"month_cap"`
	}
	Tasks          []card
	Open           int
	Poison         []json.RawMessage
	Missing        []json.RawMessage `json:"app_missing"`
	UnstartedCount int               `json:"unstarted_count"`
	Paused         []pausedEntry
	Trouble        []json.RawMessage `json:"model_trouble"`
}

// narrow is the width of a terminal, in characters, below which the reason for the wait of each task is shown instead of the next step.
const narrow = 110

// text returns the board for people, for a terminal with so many columns, or 0 for any width. Texts of issues are cleaned, so that they
// cannot control the terminal.
func (b board) text(columns int) string {
	var s strings.Builder
	fmt.Fprintf(&s, "errand %s at %s: %s", b.Version, b.At.UTC().Format("15:04:05 MST"), words.Many(b.Open, "open task"))
	if m := b.Money; m != nil {
		fmt.Fprintf(&s, "; today %s%s, this month %s%s", m.TodayWords, ofCap(m.DayCap), m.MonthWords, ofCap(m.MonthCap))
	}
	s.WriteByte('\n')
	s.WriteString(pausedLine(b.Paused, b.At))
	for _, p := range []struct {
		n    int
		text string
	}{
		{len(b.Trouble), "unavailable model provider"},
		{len(b.Missing), "missing permission or event"},
		{len(b.Poison), "webhook that could not be applied"},
		{b.UnstartedCount, "issue with an old trigger, not started"},
	} {
		if p.n > 0 {
			fmt.Fprintf(&s, "! %d × %s\n", p.n, p.text)
		}
	}
	if len(b.Tasks) > 0 {
		s.WriteByte('\n')
		b.writeTasks(&s, columns > 0 && columns < narrow)
		if more := b.Open - len(b.Tasks); more > 0 {
			fmt.Fprintf(&s, "… and %d more\n", more)
		}
	}
	return logview.Plain(s.String())
}

// writeTasks writes the table of tasks.
func (b board) writeTasks(s *strings.Builder, isNarrow bool) {
	t := tabwriter.NewWriter(s, 0, 0, 2, ' ', 0) // a strings.Builder has no errors
	if isNarrow {
		_, _ = fmt.Fprintln(t, "TASK\tPHASE\tWAITING FOR\tFOR\tSPENT")
	} else {
		_, _ = fmt.Fprintln(t, "TASK\tPHASE\tFOR\tSPENT\tNEXT")
	}
	for _, c := range b.Tasks {
		phase, since := words.Phase(c.Phase), words.Span(b.At.Sub(c.Since))
		if isNarrow {
			_, _ = fmt.Fprintf(t, "%s#%d\t%s\t%s\t%s\t%s\n", c.Repo, c.Issue, phase, cmp.Or(c.Awaits, "–"), since, c.Money.Words)
			continue
		}
		if c.Waiting != nil {
			phase += ", waiting for " + words.Wait(c.Waiting.Kind)
		}
		_, _ = fmt.Fprintf(t, "%s#%d\t%s\t%s\t%s\t%s\n", c.Repo, c.Issue, phase, since, c.Money.Words, logview.OneLine(c.Next))
	}
	_ = t.Flush()
}

func ofCap(dollars float64) string {
	if dollars <= 0 {
		return ""
	}
	return fmt.Sprintf(" of $%.2f", dollars)
}
