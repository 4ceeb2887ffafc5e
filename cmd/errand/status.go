package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/errand-bot/errand/internal/clock"
	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/logview"
	"github.com/errand-bot/errand/internal/words"
)

// statusFlags are the flags of status.
type statusFlags struct {
	path   string
	asJSON bool
	watch  bool
	every  time.Duration // between two reports of watch
}

const (
	watchEvery = 5 * time.Second
	maxTasks   = 500 // that are listed
)

// statusCommand lists the open tasks.
func statusCommand(w world) *cobra.Command {
	f := statusFlags{every: watchEvery}
	c := &cobra.Command{
		Use:   "status",
		Short: "List the open tasks, the costs and the problems of the running errand",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if f.asJSON && f.watch {
				return errUsage{errors.New("--json cannot be used with --watch")}
			}
			ctx, stop := untilSignal(c.Context())
			defer stop()
			cfg, err := config.Load(f.path, w.env)
			if err != nil {
				return err
			}
			return f.run(ctx, w, cfg)
		},
	}
	configFlag(c, &f.path)
	c.Flags().BoolVar(&f.asJSON, "json", false, "print JSON: the data of the page /status, with at most 500 open tasks")
	c.Flags().BoolVarP(&f.watch, "watch", "w", false, "show it again every five seconds until Ctrl-C, also while errand restarts")
	return c
}

func (f statusFlags) run(ctx context.Context, w world, cfg config.Config) error {
	for first := true; ; first = false {
		body, err := getJSON(ctx, cfg, fmt.Sprintf("/status.json?offset=0&limit=%d", maxTasks))
		switch {
		case ctx.Err() != nil && f.watch:
			return nil // Ctrl-C
		case err != nil && first:
			return err
		case f.asJSON:
			return printJSON(w.out, body)
		}
		var b board
		if err == nil {
			if err = json.Unmarshal(body, &b); err != nil {
				err = fmt.Errorf("read errand's answer: %w", err)
			}
		}
		switch {
		case err == nil && f.watch:
			err = b.write(clearing{w.out})
		case err == nil:
			return b.write(w.out)
		case !first: // errand may be restarting
			_, err = fmt.Fprintf(w.out, "\n%s\nTrying again.\n", oneLine(err.Error()))
		}
		if err != nil {
			return err
		}
		if clock.Sleep(ctx, f.every) != nil {
			return nil // Ctrl-C
		}
	}
}

// clearing writes to a terminal whose screen is cleared first.
type clearing struct{ io.Writer }

func (c clearing) Write(p []byte) (int, error) {
	if _, err := io.WriteString(c.Writer, "\x1b[H\x1b[2J"); err != nil {
		return 0, err
	}
	return c.Writer.Write(p)
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
	Trouble        []json.RawMessage `json:"model_trouble"`
}

// write writes the board for people. Texts of issues are cleaned, so that they cannot control the terminal.
func (b board) write(w io.Writer) error {
	var s strings.Builder
	fmt.Fprintf(&s, "errand %s at %s: %s", b.Version, b.At.UTC().Format("15:04:05 MST"), words.Many(b.Open, "open task"))
	if m := b.Money; m != nil {
		fmt.Fprintf(&s, "; today %s%s, this month %s%s", m.TodayWords, ofCap(m.DayCap), m.MonthWords, ofCap(m.MonthCap))
	}
	s.WriteByte('\n')
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
		t := tabwriter.NewWriter(&s, 0, 0, 2, ' ', 0)
		_, _ = fmt.Fprintln(t, "TASK\tPHASE\tFOR\tSPENT\tNEXT") // a strings.Builder has no errors
		for _, c := range b.Tasks {
			phase := words.Phase(c.Phase)
			if c.Waiting != nil {
				phase += ", waiting for " + words.Wait(c.Waiting.Kind)
			}
			_, _ = fmt.Fprintf(t, "%s#%d\t%s\t%s\t%s\t%s\n", c.Repo, c.Issue, phase, words.Span(b.At.Sub(c.Since)), c.Money.Words, oneLine(c.Next))
		}
		_ = t.Flush()
		if more := b.Open - len(b.Tasks); more > 0 {
			fmt.Fprintf(&s, "… and %d more\n", more)
		}
	}
	_, err := io.WriteString(w, logview.Plain(s.String()))
	return err
}

// printJSON prints JSON without characters that a terminal interprets.
func printJSON(w io.Writer, data []byte) error {
	_, err := w.Write(logview.PlainJSON(data))
	return err
}

// oneLine returns a text without control characters and line breaks.
func oneLine(text string) string { return strings.Join(strings.Fields(logview.Plain(text)), " ") }

func ofCap(dollars float64) string {
	if dollars <= 0 {
		return ""
	}
	return fmt.Sprintf(" of $%.2f", dollars)
}
