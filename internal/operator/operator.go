// Package operator has the commands with which an operator of the running errand looks at it and directs it: status, tasks, cancel, pause
// and so on. They call its admin API at admin.listen or listen, with admin.token; errand itself decides what is allowed and records it in its
// audit log. Commands that work on files, or without a running errand, are in `cmd/errand`.
//
// Start with [Commands].
package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/errand-bot/errand/internal/cli"
	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/selfclient"
	"github.com/errand-bot/errand/state"
)

// Commands returns the commands that call the running errand.
func Commands(w cli.World) []*cobra.Command {
	list := []*cobra.Command{
		statusCommand(w), tasksCommand(w), taskCommand(w), auditCommand(w), runCommand(w), adoptCommand(w), purgeCommand(w), destroyCommand(w),
	}
	list = append(list, actionCommands(w)...)
	return append(list, pauseCommands(w)...)
}

// Named is an issue in the board.
type Named struct {
	Repo  string
	Issue int
	Phase state.Phase // none if it has no task
}

// Listing is the part of the board that names tasks.
type Listing struct {
	Tasks, Ended, Unstarted []Named
}

// List returns the tasks of the running errand, of one repository if its name is valid.
func List(ctx context.Context, cfg config.Config, repo string) (l Listing, err error) {
	query := url.Values{"offset": {"0"}, "limit": {fmt.Sprint(maxTasks)}}
	if cli.RepoName.MatchString(repo) {
		query.Set("repo", repo)
	}
	body, err := selfclient.GetJSON(ctx, cfg, "/status.json?"+query.Encode())
	if err != nil {
		return l, err
	}
	if err := json.Unmarshal(body, &l); err != nil {
		return l, fmt.Errorf("read errand's answer: %w", err)
	}
	return l, nil
}
