package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"golang.org/x/text/width"

	"github.com/errand-bot/errand/internal/cli"
	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/logview"
	"github.com/errand-bot/errand/internal/selfclient"
	"github.com/errand-bot/errand/internal/trust"
	"github.com/errand-bot/errand/internal/words"
	"github.com/errand-bot/errand/state/settings"
)

// runCommand begins tasks for issues whose text the operator was shown.
func runCommand(w cli.World) *cobra.Command {
	var o runOrder
	var path string
	c := &cobra.Command{
		Use:   "run OWNER/REPO#N [N …]",
		Short: "Show issues, and begin a task for each whose title and text you vouch for",
		Long: "Show the title and the text of each issue, and begin a task with exactly these after you confirm it. You vouch for them in the place\n" +
			"of a person with write access; invisible characters are shown as \\u{…}. This approves no plan: that takes a person with write access\n" +
			"on GitHub, as usual. Further issues of the same repository can be given as N.\n\n" +
			"Programs use --json, which only shows the issues, and then --yes with the hash of each text that was shown, in the order of the\n" +
			"issues: no task begins for a text that has changed since. errand has to be running; the command reaches it at admin.listen or\n" +
			"listen. Each order is recorded in the audit log: see `errand audit`. The exit code is 1 if any task was not begun.",
		RunE: func(c *cobra.Command, args []string) error {
			var err error
			if o.issues, err = namedIssues(args); err != nil {
				return cli.Usage(err)
			}
			if err := o.check(w.Terminal && w.Screen); err != nil {
				return cli.Usage(err)
			}
			cfg, err := config.Load(path, w.Lookup)
			if err != nil {
				return err
			}
			return o.run(c.Context(), w, cfg)
		},
	}
	cli.ConfigFlag(c, &path)
	c.Flags().BoolVar(&o.yes, "yes", false, "do not ask; needs --text for each issue")
	c.Flags().StringSliceVar(&o.texts, "text", nil, "hash of the text that was shown, for --yes; once for each issue, in their order")
	c.Flags().BoolVar(&o.asJSON, "json", false, "print JSON; without --yes, only show the issues")
	return c
}

// furtherIssue matches an issue of the repository that was named before. A shell takes # at the beginning of a word as a comment.
var furtherIssue = regexp.MustCompile(`^#?([1-9][0-9]{0,9})$`)

// namedIssues returns the issues of a command line, each as OWNER/REPO#N.
func namedIssues(args []string) ([]string, error) {
	var issues []string
	repo := ""
	for _, a := range args {
		n := furtherIssue.FindStringSubmatch(a)
		switch {
		case cli.TaskName.MatchString(a):
			repo, _, _ = strings.Cut(a, "#")
		case n != nil && repo != "":
			a = repo + "#" + n[1]
		default:
			return nil, fmt.Errorf("run takes issues, as OWNER/REPO#N and then N for others of the same repository, but got %q", a)
		}
		issues = append(issues, a)
	}
	if len(issues) == 0 {
		return nil, errors.New("run takes issues, as OWNER/REPO#N")
	}
	return issues, nil
}

// runOrder is the order to begin tasks.
type runOrder struct {
	issues, texts []string
	yes, asJSON   bool
}

// check returns why the flags do not fit, or nil. An operator can only confirm at a terminal that shows the text.
func (o *runOrder) check(terminal bool) error {
	switch {
	case o.yes && len(o.texts) != len(o.issues):
		return errors.New("--yes needs --text with the hash of the text that was shown, once for each issue and in their order: see `errand run --json`")
	case !o.yes && len(o.texts) > 0:
		return errors.New("--text is for --yes")
	case !o.yes && !o.asJSON && !terminal:
		return errors.New("run shows each issue and asks, which needs a terminal for its input and its output; programs use --json, and then --yes with --text")
	}
	return nil
}

// shownIssue is an issue as errand shows it before its task begins.
type shownIssue struct {
	Issue, URL, Author, Title, Body, Text, Plan string

	Comments             []struct{ By, Withheld string }
	Files, Hidden, Waits []string
}

// ranIssue is the result for one issue, for programs.
type ranIssue struct {
	Issue   string          `json:"issue"`
	Shown   json.RawMessage `json:"shown,omitempty"`
	Result  string          `json:"result,omitempty"`
	Refused string          `json:"refused,omitempty"`
}

// run handles the issues in turn. A refusal does not affect the others.
func (o *runOrder) run(ctx context.Context, w cli.World, cfg config.Config) error {
	asker, results, texts := cli.NewAsker(w), []ranIssue{}, o.texts
	each := order{notDone: "not started"}
	each.do = func(ctx context.Context, issue string) (string, error) {
		r := ranIssue{Issue: issue}
		var err error
		switch {
		case o.yes:
			r.Result, err = beginTask(ctx, cfg, issue, texts[0])
			texts = texts[1:]
		case o.asJSON:
			r.Shown, err = preview(ctx, cfg, issue)
		default:
			r.Result, err = confirmAndBegin(ctx, w, asker, cfg, issue)
		}
		var refused refusal
		if errors.As(err, &refused) {
			r = ranIssue{Issue: issue, Refused: refused.Error()}
		} else if err != nil {
			return "", err
		}
		results = append(results, r)
		if o.asJSON {
			return "", err
		}
		return each.line(issue, r.Result), err
	}
	err := each.each(ctx, w, o.issues)
	if !o.asJSON {
		return err
	}
	data, failed := json.MarshalIndent(map[string]any{"issues": results}, "", "  ")
	if failed == nil {
		failed = cli.PrintJSON(w.Out, append(data, '\n'))
	}
	return errors.Join(err, failed)
}

// confirmAndBegin shows an issue and begins its task if the operator agrees.
func confirmAndBegin(ctx context.Context, w cli.World, asker *cli.Asker, cfg config.Config, issue string) (string, error) {
	data, err := preview(ctx, cfg, issue)
	if err != nil {
		return "", err
	}
	var shown shownIssue
	if err := json.Unmarshal(data, &shown); err != nil {
		return "", fmt.Errorf("read errand's answer: %w", err)
	}
	if _, err := io.WriteString(w.Out, shown.page(lineWidth(w.Out))); err != nil {
		return "", err
	}
	ok, err := asker.Confirm(ctx, "Do you vouch for this title and text, and begin the task?")
	if err != nil {
		return "", err
	}
	if !ok {
		return "", refusal("you did not confirm it")
	}
	return beginTask(ctx, cfg, issue, shown.Text)
}

// preview asks the running errand for an issue as its task would freeze it.
func preview(ctx context.Context, cfg config.Config, issue string) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, orderTimeout)
	defer cancel()
	a, err := accepted(selfclient.Ask(ctx, cfg, http.MethodGet, pageOf(issue, "run.json")))
	if err == nil {
		err = a.CheckJSON("issue", "text")
	}
	return a.Body, err
}

// beginTask has the running errand begin the task of an issue, if it still has the text of that hash.
func beginTask(ctx context.Context, cfg config.Config, issue, text string) (string, error) {
	a, err := post(ctx, orderTimeout, cfg, pageOf(issue, "run"), url.Values{"text": {text}})
	return a.Text(), err
}

// page shows the issue. Each line of the issue's text, of at most so many columns, has a mark, so that no text looks like errand's own.
func (s *shownIssue) page(columns int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s, by %s\n%s\ntext %s\n\n", logview.OneLine(s.Issue), logview.OneLine(s.Author), logview.OneLine(s.URL), logview.OneLine(s.Text))
	writeMarked(&b, s.Title, columns)
	b.WriteString("\n")
	if strings.TrimSpace(s.Body) == "" {
		b.WriteString("  (no text)\n")
	} else {
		writeMarked(&b, s.Body, columns)
	}
	b.WriteString("\n")
	if len(s.Hidden) > 0 {
		fmt.Fprintf(&b, "The agent gets this without hidden content: %s.\n", logview.OneLine(strings.Join(s.Hidden, ", ")))
	}
	if n := len(s.Files); n > 0 {
		fmt.Fprintf(&b, "! The agent also gets %s, not shown here. You vouch for what is at:\n", words.Many(n, "attached file"))
		writeMarked(&b, strings.Join(s.Files, "\n"), columns)
	}
	var given, withheld []string
	for _, c := range s.Comments {
		by := logview.OneLine(c.By)
		if by == "" {
			by = "somebody"
		}
		if c.Withheld != "" {
			withheld = append(withheld, fmt.Sprintf("by %s (%s)", by, logview.OneLine(c.Withheld)))
		} else if !slices.Contains(given, by) {
			given = append(given, by)
		}
	}
	if len(given) > 0 {
		fmt.Fprintf(&b, "The agent also gets the comments by %s.\n", strings.Join(given, ", "))
	}
	if n := len(withheld); n > 0 {
		fmt.Fprintf(&b, "Withheld from the agent: %s %s.\n", words.Many(n, "comment"), strings.Join(withheld[:min(n, maxNamed)], ", "))
	}
	if s.Plan == string(settings.PlanNone) {
		b.WriteString("! The repository requires no plan, so the agent begins to implement at once.\n")
	}
	for _, wait := range s.Waits {
		fmt.Fprintf(&b, "! The task will wait: %s\n", logview.OneLine(wait))
	}
	return b.String()
}

// maxNamed is the maximum number of withheld comments that are named.
const maxNamed = 5

// Limits of the lines of an issue's text: wider ones are continued in the next line, and more empty ones are counted.
const (
	maxColumns = 72
	minColumns = 20
	maxEmpty   = 2
)

const tabStop = 8

// lineWidth returns the maximum width of the lines of an issue's text, with which a terminal does not wrap them.
func lineWidth(out io.Writer) int {
	size := cli.TerminalSize(out)
	if size == nil {
		return maxColumns
	}
	columns, _ := size()
	return max(minColumns, min(maxColumns, columns-8))
}

// writeMarked writes a text completely, each line with a mark and invisible characters as code points.
func writeMarked(b *strings.Builder, text string, columns int) {
	empty := 0
	for line := range strings.SplitSeq(strings.TrimRight(strings.ReplaceAll(text, "\r\n", "\n"), "\n "), "\n") {
		line = trust.Reveal(line)
		if strings.TrimSpace(line) == "" {
			empty++
			continue
		}
		if empty > maxEmpty {
			fmt.Fprintf(b, "  | (%d empty lines)\n", empty)
		} else {
			b.WriteString(strings.Repeat("  |\n", empty))
		}
		empty = 0
		b.WriteString("  | ")
		at := 0
		for _, r := range line {
			shown, wide := string(r), runeWidth(r)
			if r == '\t' {
				wide = tabStop - at%tabStop
				shown = strings.Repeat(" ", wide)
			}
			if at+wide > columns {
				b.WriteString("\n  + ")
				at = 0
			}
			b.WriteString(shown)
			at += wide
		}
		b.WriteString("\n")
	}
}

// runeWidth returns the number of columns that a terminal may use for a character. Terminals do not agree about symbols.
func runeWidth(r rune) int {
	kind := width.LookupRune(r).Kind()
	if kind == width.EastAsianWide || kind == width.EastAsianFullwidth || r > unicode.MaxLatin1 && unicode.Is(unicode.So, r) {
		return 2
	}
	return 1
}
