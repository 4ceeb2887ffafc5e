package operator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
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

// card is the part of a task's summary, in status.json and task.json, that is printed.
type card struct {
	Repo   string
	Issue  int
	Title  string
	Page   string
	URL    string
	Phase  state.Phase
	Since  time.Time
	Next   string
	Awaits string
	Money  struct {
		Words        string
		Cap          float64
		InputTokens  int64   `json:"input_tokens"`
		OutputTokens int64   `json:"output_tokens"`
		AgentSeconds float64 `json:"agent_seconds"`
	}
	Waiting *struct {
		Kind   state.WaitKind
		Detail string
		Since  time.Time
		Until  time.Time
	}
	Run *struct {
		Seq, Turns int
		Doing      string
		Sign       time.Time
	}
	VM     *struct{ Name, Provider, Kind string }
	Asleep *struct{ At time.Time }
	Branch string
	PR     *struct {
		Number             int
		URL, State, Checks string
		ChecksReason       string `json:"checks_reason"`
		ChecksOptional     string `json:"checks_optional"`
		MergeWaits         string `json:"merge_waits"`
		Draft              bool
	} `json:"pull_request"`
	End *struct{ Reason, Hint string }
}

// vm names the task's VM, or says that its work is suspended.
func (c card) vm() string {
	switch {
	case c.VM != nil:
		return c.VM.Name
	case c.Asleep != nil:
		return "suspended"
	}
	return "–"
}

// maxListed is the maximum number of open tasks in a list. Even with the longest texts, they are far below selfclient.MaxAnswer.
const maxListed = 2000

// tasksFlags are the flags of tasks.
type tasksFlags struct {
	path, repo  string
	all, asJSON bool
}

// tasksCommand lists tasks.
func tasksCommand(w cli.World) *cobra.Command {
	var f tasksFlags
	c := &cobra.Command{
		Use:   "tasks",
		Short: "List tasks: the open ones, those of a repository, or also ended ones",
		Long: "List the open tasks: the phase of each, what it waits for, since when, its cost, and its VM. `errand status` shows the next\n" +
			"steps and errand's problems, and `errand task` all about one task. errand has to be running; the command reaches it at\n" +
			"admin.listen or listen.",
		Args: cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if f.repo != "" && !cli.RepoName.MatchString(f.repo) {
				return cli.Usage(fmt.Errorf("--repo takes a repository, as OWNER/REPO, but got %q", f.repo))
			}
			cfg, err := config.Load(f.path, w.Lookup)
			if err != nil {
				return err
			}
			return f.run(c.Context(), w, cfg)
		},
	}
	cli.ConfigFlag(c, &f.path)
	c.Flags().BoolVarP(&f.all, "all", "a", false, "also those of the 100 tasks that ended last")
	c.Flags().StringVar(&f.repo, "repo", "", "only those of this repository, as OWNER/REPO")
	c.Flags().BoolVar(&f.asJSON, "json", false, "print JSON: at, open, tasks, and with --all ended")
	return c
}

// taskList is the output for programs. Fields may be added but never change.
type taskList struct {
	At    time.Time         `json:"at"`
	Open  int               `json:"open"`            // the number of open tasks, even if not all are listed
	Tasks []json.RawMessage `json:"tasks"`           // each as in status.json
	Ended []json.RawMessage `json:"ended,omitempty"` // newest first
}

func (f tasksFlags) run(ctx context.Context, w cli.World, cfg config.Config) error {
	query := url.Values{"offset": {"0"}, "limit": {fmt.Sprint(maxListed)}}
	if f.repo != "" {
		query.Set("repo", f.repo)
	}
	body, err := selfclient.GetJSON(ctx, cfg, "/status.json?"+query.Encode(), "at", "open")
	if err != nil {
		return err
	}
	var list taskList
	if err := json.Unmarshal(body, &list); err != nil {
		return fmt.Errorf("read errand's answer: %w", err)
	}
	if !f.all {
		list.Ended = nil
	}
	if f.asJSON {
		data, err := json.MarshalIndent(list, "", "  ")
		if err != nil {
			return fmt.Errorf("print the tasks: %w", err)
		}
		return cli.PrintJSON(w.Out, append(data, '\n'))
	}
	var text strings.Builder
	if err := list.write(&text); err != nil {
		return fmt.Errorf("read errand's answer: %w", err)
	}
	_, err = io.WriteString(w.Out, logview.Plain(text.String()))
	return err
}

// write writes the list for people.
func (l taskList) write(s *strings.Builder) error {
	t := cli.NewTable(s, "TASK", "PHASE", "WAITING FOR", "SINCE (UTC)", "COST", "VM")
	for _, raw := range append(l.Tasks, l.Ended...) {
		var c card
		if err := json.Unmarshal(raw, &c); err != nil {
			return err
		}
		if c.Repo == "" {
			return errors.New("a task has no repository")
		}
		t.Row(fmt.Sprintf("%s#%d", c.Repo, c.Issue), words.Phase(c.Phase), cmp.Or(c.Awaits, "–"), cli.Minute(c.Since), c.Money.Words, c.vm())
	}
	if t.Rows == 0 {
		s.WriteString("There are no such tasks.\n")
	}
	t.Flush()
	if more := l.Open - len(l.Tasks); more > 0 {
		fmt.Fprintf(s, "… and %d more open tasks; --repo lists those of one repository\n", more)
	}
	return nil
}
