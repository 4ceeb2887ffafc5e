package operator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/errand-bot/errand/internal/cli"
	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/logview"
	"github.com/errand-bot/errand/internal/selfclient"
	"github.com/errand-bot/errand/internal/words"
	"github.com/errand-bot/errand/state"
)

// maxShown is the number of rows of each table of one task; JSON has more.
const maxShown = 10

// taskCommand shows one task.
func taskCommand(w cli.World) *cobra.Command {
	var path string
	var asJSON bool
	c := &cobra.Command{
		Use:   "task OWNER/REPO#N",
		Short: "Show a task: what it waits for, its plans and approvals, runs, costs, VMs and links",
		Long: "Show a task: its phase, what it waits for and its next step, its plans and who approved them, its runs, costs, VMs and links,\n" +
			"and what operators did to it. errand has to be running; the command reaches it at admin.listen or listen.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || !cli.TaskName.MatchString(args[0]) {
				return cli.Usage(fmt.Errorf("task takes one issue, as OWNER/REPO#N, but got %q", args))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			cfg, err := config.Load(path, w.Lookup)
			if err != nil {
				return err
			}
			return showTask(c.Context(), w, cfg, args[0], asJSON)
		},
	}
	cli.ConfigFlag(c, &path)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// taskReport is the part of task.json that is printed.
type taskReport struct {
	At      time.Time
	Task    card
	Started struct {
		By, Via  string
		At       time.Time
		Operator bool
	}
	Question string
	Comment  string `json:"status_comment"`
	Phases   []state.PhaseChange
	Plans    []planReport
	Runs     []struct {
		Seq                    int
		Kind                   state.RunKind
		State, Status, Message string
		Model, Words           string
		Started                time.Time
		Seconds                float64
	}
	VMs []struct {
		Name, Provider, Kind, Cost string
		Created, Ended             time.Time
		Why                        state.VMEndReason
	} `json:"vms"`
	VMCost  string `json:"vm_cost"`
	Actions []struct {
		At                        time.Time
		By, From, Command, Result string
		Refused                   bool
	}
}

// planReport is a plan's revision.
type planReport struct {
	Kind        state.PlanKind
	Revision    int
	Hash, State string
	Made        time.Time
	URL         string
	Approval    *struct {
		By, Permission, With string
		Via                  state.ApprovalVia
		At                   time.Time
	}
}

func showTask(ctx context.Context, w cli.World, cfg config.Config, task string, asJSON bool) error {
	repo, number, _ := strings.Cut(task, "#")
	body, err := selfclient.GetJSON(ctx, cfg, "/tasks/"+repo+"/"+number+"/task.json", "task")
	if err != nil {
		return err
	}
	if asJSON {
		return cli.PrintJSON(w.Out, body)
	}
	var r taskReport
	if err := json.Unmarshal(body, &r); err != nil {
		return fmt.Errorf("read errand's answer: %w", err)
	}
	if r.Task.Repo == "" {
		return errors.New("read errand's answer: the task has no repository")
	}
	var s strings.Builder
	r.write(&s, cmp.Or(strings.TrimSuffix(cfg.PublicURL, "/"), "http://"+selfclient.Address(cmp.Or(cfg.Admin.Listen, cfg.Listen))))
	_, err = io.WriteString(w.Out, logview.Plain(s.String()))
	return err
}

// write writes the task for people. site is the address of errand's pages.
func (r *taskReport) write(s *strings.Builder, site string) {
	c := r.Task
	fmt.Fprintf(s, "%s#%d: %s\n\n", c.Repo, c.Issue, logview.OneLine(c.Title))
	facts := cli.NewTable(s)
	r.writeFacts(facts)
	r.writeLinks(facts, site)
	facts.Flush()
	r.writePlans(s)
	r.writeRuns(s)
	r.writeVMs(s)
	t := section(s, "Actions of operators", "TIME (UTC)", "OPERATOR", "COMMAND", "RESULT")
	for _, a := range newest(r.Actions) {
		if a.Refused {
			a.Result = "refused: " + a.Result
		}
		if a.From != "" {
			a.By += " from " + a.From
		}
		t.Row(cli.Minute(a.At), a.By, a.Command, a.Result)
	}
	t.end(len(r.Actions))
	t = section(s, "Phases", "TIME (UTC)", "PHASE", "REASON")
	for _, p := range newest(r.Phases) {
		t.Row(cli.Minute(p.At), words.Phase(p.Phase), p.Reason)
	}
	t.end(len(r.Phases))
}

// writeFacts writes one fact per line.
func (r *taskReport) writeFacts(t *cli.Table) {
	c := r.Task
	fact := func(name, text string) {
		if text != "" {
			t.Row(name, text)
		}
	}
	fact("phase", fmt.Sprintf("%s since %s UTC (%s)", words.Phase(c.Phase), cli.Minute(c.Since), words.Span(r.At.Sub(c.Since))))
	fact("waiting for", c.Awaits)
	fact("next", c.Next)
	if wait := c.Waiting; wait != nil {
		detail := fmt.Sprintf("%s Since %s UTC.", wait.Detail, cli.Minute(wait.Since))
		if !wait.Until.IsZero() {
			detail += fmt.Sprintf(" Tried again at %s UTC.", cli.Minute(wait.Until))
		}
		fact("reason", detail)
	}
	fact("question", r.Question)
	if run := c.Run; run != nil {
		doing := fmt.Sprintf("run %d, %s", run.Seq, words.Many(run.Turns, "turn"))
		if !run.Sign.IsZero() {
			doing += fmt.Sprintf(", last activity %s ago: %s", words.Span(r.At.Sub(run.Sign)), run.Doing)
		}
		fact("agent", doing)
	}
	if c.End != nil {
		fact("ended", strings.TrimSpace(c.End.Reason+" "+c.End.Hint))
	}
	by := " by " + r.Started.By + ", " + r.Started.Via
	switch {
	case r.Started.Operator && r.Started.By == "":
		by = " by the operator"
	case r.Started.Operator:
		by = " by the operator; first by " + r.Started.By
	case r.Started.By == "": // nobody is named once the task is purged
		by = ", " + r.Started.Via
	}
	fact("started", cli.Minute(r.Started.At)+" UTC"+by)
	fact("cost", fmt.Sprintf("%s%s; %s tokens in, %s out; agents worked for %s", c.Money.Words, ofCap(c.Money.Cap),
		words.Count(c.Money.InputTokens), words.Count(c.Money.OutputTokens), words.Span(time.Duration(c.Money.AgentSeconds*float64(time.Second)))))
	fact("VMs paid for", r.VMCost)
	fact("branch", c.Branch)
}

// writeLinks writes the addresses of the task's pages.
func (r *taskReport) writeLinks(t *cli.Table, site string) {
	c := r.Task
	for _, l := range [][2]string{{"issue", c.URL}, {"status comment", r.Comment}, {"page", site + c.Page}} {
		if l[1] != "" {
			t.Row(l[0], l[1])
		}
	}
	if p := c.PR; p != nil {
		notes := p.State
		if p.Draft {
			notes += ", draft"
		}
		if p.Checks != "" {
			notes += ", checks " + p.Checks
		}
		if p.ChecksReason != "" {
			notes += ": " + p.ChecksReason
		}
		if p.ChecksOptional != "" {
			notes += "; not required, but failing: " + p.ChecksOptional
		}
		if p.MergeWaits != "" {
			notes += "; not merged yet: " + p.MergeWaits
		}
		t.Row("pull request", fmt.Sprintf("%s (%s)", p.URL, notes))
	}
}

func (r *taskReport) writePlans(s *strings.Builder) {
	t := section(s, "Plans and approvals", "MADE (UTC)", "PLAN", "STATE", "COMMENT")
	for _, p := range newest(r.Plans) {
		if a := p.Approval; a != nil {
			p.State = fmt.Sprintf("approved by %s (%s), %s, %s", a.By, a.Permission, words.Via(a.Via), cli.Minute(a.At))
			if a.With != "" {
				p.State += ", with: " + a.With
			}
		}
		t.Row(cli.Minute(p.Made), fmt.Sprintf("%s, revision %d (%s)", words.Plan(p.Kind), p.Revision, p.Hash), p.State, cmp.Or(p.URL, "–"))
	}
	t.end(len(r.Plans))
}

func (r *taskReport) writeRuns(s *strings.Builder) {
	t := section(s, "Runs", "RUN", "STEP", "STATUS", "BEGAN (UTC)", "TOOK", "COST", "MODEL", "RESULT")
	for _, run := range newest(r.Runs) {
		took := "–"
		if !run.Started.IsZero() {
			took = words.Span(time.Duration(run.Seconds * float64(time.Second)))
		}
		t.Row(fmt.Sprint(run.Seq), words.Run(run.Kind), words.Plain(cmp.Or(run.Status, run.State)), cli.Minute(run.Started), took,
			run.Words, cmp.Or(run.Model, "–"), cmp.Or(run.Message, "–"))
	}
	t.end(len(r.Runs))
}

func (r *taskReport) writeVMs(s *strings.Builder) {
	t := section(s, "VMs", "NAME", "PROVIDER", "KIND", "BEGAN (UTC)", "ENDED (UTC)", "REASON", "COST")
	for _, m := range newest(r.VMs) {
		why := "in use"
		if m.Why != "" {
			why = words.VMEnd(m.Why)
		}
		t.Row(m.Name, m.Provider, m.Kind, cli.Minute(m.Created), cli.Minute(m.Ended), why, cmp.Or(m.Cost, "–"))
	}
	t.end(len(r.VMs))
}

// newest returns the first rows of a list.
func newest[T any](list []T) []T { return list[:min(len(list), maxShown)] }

// titled is a table with a title, which is printed only if the table has rows.
type titled struct {
	*cli.Table
	s     *strings.Builder
	title string
	text  strings.Builder
}

func section(s *strings.Builder, title string, head ...string) *titled {
	t := &titled{s: s, title: title}
	t.Table = cli.NewTable(&t.text, head...)
	return t
}

// end prints the table, of which the list has all rows.
func (t *titled) end(all int) {
	t.Flush()
	if t.Rows == 0 {
		return
	}
	fmt.Fprintf(t.s, "\n%s\n%s", t.title, t.text.String())
	if more := all - t.Rows; more > 0 {
		fmt.Fprintf(t.s, "… and %d older; --json has them\n", more)
	}
}
