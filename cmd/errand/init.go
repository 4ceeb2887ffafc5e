package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/errand-bot/errand/internal/cli"
	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/initrepo"
	"github.com/errand-bot/errand/internal/logview"
	"github.com/errand-bot/errand/internal/scan"
	"github.com/errand-bot/errand/internal/server"
)

// initiation has the flags of init.
type initiation struct {
	path, branch                       string
	dryRun, asJSON, noPlay, yes, force bool
}

// initCommand proposes the settings of a repository.
func initCommand(w cli.World) *cobra.Command {
	var f initiation
	c := &cobra.Command{
		Use:   "init OWNER/REPO",
		Short: "Propose a repository's settings in a pull request",
		Long: "Examine the files of the default branch (languages, commands for tests, CI, rules for contributions), try the commands in a sandbox on\n" +
			"this host, show the resulting .errand.yml, and open a pull request with it if you agree. Repeated, it updates that pull request.\n\n" +
			"Present settings are only replaced with --force. Nothing of the repository runs outside of the sandbox. errand may be running or not.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || !cli.RepoName.MatchString(args[0]) {
				return cli.Usage(fmt.Errorf("write one repository as OWNER/REPO, instead of %q", strings.Join(args, " ")))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			ctx, stop := cli.UntilSignal(c.Context())
			defer stop()
			return f.run(ctx, w, args[0])
		},
	}
	cli.ConfigFlag(c, &f.path)
	c.Flags().StringVar(&f.branch, "branch", initrepo.DefaultBranch, "branch of the pull request")
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "show what was found and the file, and change nothing on GitHub")
	c.Flags().BoolVar(&f.noPlay, "no-play", false, "do not try the commands")
	c.Flags().BoolVar(&f.yes, "yes", false, "open the pull request without asking")
	c.Flags().BoolVar(&f.force, "force", false, "replace present settings, changes of people on the branch, and a closed pull request")
	c.Flags().BoolVar(&f.asJSON, "json", false, "print JSON at the end, and progress on standard error; needs --yes or --dry-run")
	return c
}

// initResult is the output of init as JSON.
type initResult struct {
	Repository string `json:"repository"`
	Branch     string `json:"branch"` // the examined one
	Commit     string `json:"commit"`
	scan.Report
	// Tried says where the commands were tried, or why not.
	Tried       string              `json:"tried"`
	File        string              `json:"file"`
	Missing     []string            `json:"missing"` // what present settings lack
	PullRequest *initrepo.Published `json:"pull_request"`
}

func (f initiation) run(ctx context.Context, w cli.World, name string) error {
	if f.asJSON && !f.yes && !f.dryRun {
		return cli.Usage(errors.New("--json asks nothing: add --dry-run, or --yes to open the pull request"))
	}
	if !f.dryRun && !f.yes && !w.Terminal {
		return cli.Usage(errors.New("there is no terminal to ask in: add --dry-run, or --yes to open the pull request"))
	}
	cfg, err := config.Load(f.path, w.Lookup)
	if err != nil {
		return err
	}
	log := zerolog.New(zerolog.ConsoleWriter{Out: w.Err, NoColor: true}).Level(zerolog.WarnLevel).With().Timestamp().Logger()
	tools, err := server.OpenInit(ctx, cfg, server.Options{Log: log, Version: builtFrom().version, BinDir: w.BinDir})
	if err != nil {
		return err
	}
	s := &initSession{tools: tools, proposer: tools.Proposer(), agents: cfg.Provider, say: w.Out}
	err = f.propose(ctx, w, s, name)
	if ctx.Err() != nil {
		err = f.interrupted(err, s.publishing)
	}
	return errors.Join(err, tools.Close())
}

// interrupted adds to the error after a signal what may have happened on GitHub: requests that were under way may have arrived. A
// signal after the end changes nothing.
func (f initiation) interrupted(err error, publishing bool) error {
	switch {
	case err == nil:
		return nil
	case publishing:
		return errors.Join(fmt.Errorf("interrupted; the branch %s may have been written: run the command again to continue", f.branch), err)
	}
	return errors.Join(errors.New("interrupted; nothing was changed on GitHub"), err)
}

// An initSession is one use of init.
type initSession struct {
	tools    *server.Init
	proposer *initrepo.Proposer
	agents   string    // where agents work
	say      io.Writer // for people
	// publishing reports that GitHub may have been changed.
	publishing bool
}

func (f initiation) propose(ctx context.Context, w cli.World, s *initSession, name string) error {
	if f.asJSON {
		s.say = w.Err
	}
	target, err := s.proposer.Find(ctx, name, f.dryRun)
	if err != nil {
		return err
	}
	if err := initrepo.CheckBranch(f.branch, target.DefaultBranch); err != nil {
		return cli.Usage(err)
	}
	report, err := s.proposer.Examine(ctx, &target)
	if err != nil {
		return err
	}
	if err := printFound(s.say, target, report); err != nil {
		return err
	}
	request := initrepo.Request{Target: target, Branch: f.branch, Force: f.force}
	if !f.dryRun && (f.force || !report.HasSettings) {
		if err := s.proposer.MayPublish(ctx, request); err != nil { // before the commands take half an hour
			return err
		}
	}
	tried, where, err := f.try(ctx, s, target, &report)
	if err != nil {
		return err
	}
	request.Draft, request.File, err = s.proposer.Draft(target, report, where)
	if err != nil {
		return err
	}
	result := initResult{Repository: target.FullName(), Branch: target.DefaultBranch, Commit: target.Commit, Report: report, Tried: tried, File: string(request.File)}
	result.PullRequest, result.Missing, err = f.conclude(ctx, w, s, request)
	if err != nil || !f.asJSON {
		return err
	}
	data, err := json.MarshalIndent(result, "", "  ")
	if err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	_, err = fmt.Fprintf(w.Out, "%s\n", logview.PlainJSON(data))
	return err
}

// try tries the commands. It returns what happened in words, and where it did, which is empty if nothing was tried.
func (f initiation) try(ctx context.Context, s *initSession, t initrepo.Target, r *scan.Report) (words, where string, err error) {
	const here = "in a sandbox on errand's host"
	switch {
	case f.noPlay:
		return "not tried: --no-play", "", nil
	case len(r.Setup)+len(r.Check) == 0:
		return "there is nothing to try", "", nil
	}
	_, _ = fmt.Fprintf(s.say, "\nTrying the commands %s:\n", here)
	box, err := s.tools.Box(ctx, s.agents)
	if err == nil {
		err = box.Try(ctx, t, r, func(list string, c scan.Command) {
			_, _ = fmt.Fprintf(s.say, "  %s: %s …\n", list, scan.Clean(c.Run))
		})
	}
	if ctx.Err() != nil {
		return "", "", ctx.Err()
	}
	if err != nil {
		words = "not tried: " + logview.OneLine(err.Error())
		_, perr := fmt.Fprintf(s.say, "The commands were %s\n", words)
		return words, "", perr
	}
	return "tried " + here, here, printTried(s.say, *r)
}

// conclude shows the file and opens the pull request, or says what the present settings lack.
func (f initiation) conclude(ctx context.Context, w cli.World, s *initSession, q initrepo.Request) (*initrepo.Published, []string, error) {
	if _, err := fmt.Fprintf(s.say, "\n%s:\n\n%s\n", scan.SettingsFile, indented(string(q.File))); err != nil {
		return nil, nil, err
	}
	if q.Draft.HasSettings && !f.force {
		missing, err := printMissing(s.say, q)
		return nil, missing, err
	}
	if f.dryRun {
		_, err := fmt.Fprintln(s.say, "Nothing was changed on GitHub (--dry-run).")
		return nil, nil, err
	}
	if !f.yes {
		ok, err := cli.NewAsker(w).Confirm(ctx, fmt.Sprintf("Open a pull request with this file in %s, or update it?", q.Target.FullName()))
		if err == nil && !ok {
			_, err = fmt.Fprintln(s.say, "Nothing was changed on GitHub.")
		}
		if err != nil || !ok {
			return nil, nil, err
		}
	}
	s.publishing = true
	got, err := s.proposer.Publish(ctx, q)
	if err != nil {
		return nil, nil, err
	}
	did := "updated"
	switch {
	case got.Opened:
		did = "opened"
	case !got.Updated:
		did = "up to date"
	}
	_, err = fmt.Fprintf(s.say, "Pull request #%d is %s: %s\n", got.Number, did, logview.OneLine(got.URL))
	return &got, nil, err
}

// printFound prints the findings, each with its origin.
func printFound(out io.Writer, t initrepo.Target, r scan.Report) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s, branch %s, commit %.12s\n\n", logview.OneLine(t.FullName()), logview.OneLine(t.DefaultBranch), logview.OneLine(t.Commit))
	tab := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	row := func(cells ...string) {
		for i := range cells {
			cells[i] = logview.OneLine(cells[i])
		}
		_, _ = fmt.Fprintln(tab, strings.Join(cells, "\t")) // a buffer takes everything
	}
	row("FOUND", "WHAT", "WHERE")
	for _, l := range r.Languages {
		row("language", l.Name, fmt.Sprintf("files: %d", l.Files))
	}
	for _, v := range r.Versions {
		row("version", v.Tool+" "+v.Version, v.Origin)
	}
	for _, m := range r.Modules {
		row("module", m.Kind+" in "+m.Dir, m.Origin)
	}
	for _, l := range []struct {
		kind  string
		facts []scan.Fact
	}{{"layout", r.Layout}, {"CI", r.CI}, {"rule", r.Rules}} {
		for _, x := range l.facts {
			row(l.kind, x.Name, x.Origin)
		}
	}
	for _, l := range []struct {
		kind string
		list []scan.Command
	}{{"setup", r.Setup}, {"check", r.Check}} {
		for _, c := range l.list {
			where := c.Origin
			if c.InCI != "" {
				where += "; also " + c.InCI
			}
			row(l.kind, c.Run, where)
		}
	}
	if err := tab.Flush(); err != nil {
		return fmt.Errorf("print the table: %w", err)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "note: %s\n", logview.OneLine(n))
	}
	_, err := out.Write(b.Bytes())
	return err
}

// printTried prints how the commands ended, with the output of those that did not succeed.
func printTried(out io.Writer, r scan.Report) error {
	var b strings.Builder
	for _, l := range []struct {
		key  string
		list []scan.Command
	}{{"setup", r.Setup}, {"check", r.Check}} {
		for _, c := range l.list {
			if c.Outcome == nil {
				continue
			}
			fmt.Fprintf(&b, "  %-9s  %6.1f s  %s: %s\n", c.Outcome.Status, c.Outcome.Seconds, l.key, logview.OneLine(c.Run))
			if c.Outcome.Reason != "" {
				fmt.Fprintf(&b, "    %s\n", logview.OneLine(c.Outcome.Reason))
			}
			if c.Outcome.Output != "" {
				b.WriteString(indented(indented(ending(logview.Plain(c.Outcome.Output)))))
			}
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// Limits on the output of a command that is printed.
const (
	endLines = 20
	endWidth = 300 // characters of a line
)

// ending returns the last lines of a text.
func ending(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	lines = lines[max(0, len(lines)-endLines):]
	for i, l := range lines {
		if runes := []rune(l); len(runes) > endWidth {
			lines[i] = string(runes[:endWidth]) + "…"
		}
	}
	return strings.Join(lines, "\n")
}

// printMissing says what present settings lack.
func printMissing(out io.Writer, q initrepo.Request) ([]string, error) {
	missing, ok := q.Draft.Missing(q.Target.Present)
	var b strings.Builder
	fmt.Fprintf(&b, "%s has a %s already, which was left as it is. ", logview.OneLine(q.Target.FullName()), scan.SettingsFile)
	switch {
	case !ok:
		b.WriteString("It is not YAML.\n")
	case len(missing) == 0:
		b.WriteString("It has everything that would be proposed.\n")
	default:
		b.WriteString("It lacks:\n")
		for _, m := range missing {
			fmt.Fprintf(&b, "  %s\n", logview.OneLine(m))
		}
	}
	b.WriteString("With --force, a pull request replaces it with the file above.\n")
	_, err := io.WriteString(out, b.String())
	return missing, err
}

// indented indents the lines of a text.
func indented(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString("  " + strings.TrimRight(line, "\n") + "\n")
	}
	return b.String()
}
