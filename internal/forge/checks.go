package forge

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/internal/forge/client"
)

// CheckState is the state of a check, or of all checks of a commit together.
type CheckState string

// The states of checks.
const (
	ChecksNone    CheckState = "none" // the commit has no checks
	ChecksPending CheckState = "pending"
	ChecksSuccess CheckState = "success" // also neutral and skipped
	ChecksFailure CheckState = "failure"
)

// Checks are the results of the checks of a commit.
type Checks struct {
	State CheckState
	Runs  []Check // by name
}

// Check is a check run or a commit status.
type Check struct {
	ID      int64
	Name    string
	State   CheckState
	URL     string
	Summary string
}

// Checks reads the newest check runs and statuses of a commit. It omits those that the App has no permission to read.
func (f *Forge) Checks(ctx context.Context, r Repo, sha string) (Checks, error) {
	op, err := f.client.Read(ctx, r.Installation, "read checks", fmt.Sprintf("of %s in %s", sha, r.FullName()))
	if err != nil {
		return Checks{}, err
	}
	runs, err := client.All(func(o github.ListOptions) ([]*github.CheckRun, *github.Response, error) {
		page, resp, err := op.GitHub.Checks.ListCheckRunsForRef(op.Ctx, r.Owner, r.Name, sha, &github.ListCheckRunsOptions{
			Filter: github.String("latest"), ListOptions: o,
		})
		if err != nil {
			return nil, resp, err
		}
		return page.CheckRuns, resp, nil
	})
	if err != nil && !client.NotGranted(err) {
		return Checks{}, op.Wrap(err)
	}
	var out Checks
	for _, run := range runs {
		out.Runs = append(out.Runs, Check{
			ID: run.GetID(), Name: run.GetName(), State: runState(run.GetStatus(), run.GetConclusion()), URL: run.GetHTMLURL(),
			Summary: run.GetOutput().GetTitle(),
		})
	}
	statuses, err := readStatuses(op, r, sha)
	if err != nil && !client.NotGranted(err) {
		return Checks{}, op.Wrap(err)
	}
	out.Runs = append(out.Runs, statuses...)
	slices.SortFunc(out.Runs, func(a, b Check) int { return strings.Compare(a.Name, b.Name) })
	out.State = combinedState(out.Runs)
	return out, nil
}

func readStatuses(op *client.Operation, r Repo, sha string) ([]Check, error) {
	list, err := client.All(func(o github.ListOptions) ([]*github.RepoStatus, *github.Response, error) {
		page, resp, err := op.GitHub.Repositories.GetCombinedStatus(op.Ctx, r.Owner, r.Name, sha, &o)
		if err != nil {
			return nil, resp, err
		}
		return page.Statuses, resp, nil
	})
	var out []Check
	for _, s := range list {
		c := Check{ID: s.GetID(), Name: s.GetContext(), State: CheckState(s.GetState()), URL: s.GetTargetURL(), Summary: s.GetDescription()}
		if s.GetState() == "error" {
			c.State = ChecksFailure
		}
		out = append(out, c)
	}
	return out, err
}

// runState returns the state of a check run.
func runState(status, conclusion string) CheckState {
	if status != "completed" {
		return ChecksPending
	}
	switch conclusion {
	case "success", "neutral", "skipped":
		return ChecksSuccess
	case "stale":
		return ChecksPending
	}
	return ChecksFailure // failure, cancelled, timed_out, action_required, and conclusions that are not known yet
}

// combinedState is failure as soon as one check fails, and success only when all have succeeded.
func combinedState(runs []Check) CheckState {
	sum := ChecksNone
	for _, c := range runs {
		switch {
		case c.State == ChecksFailure:
			return ChecksFailure
		case c.State == ChecksPending || sum == ChecksPending:
			sum = ChecksPending
		default:
			sum = ChecksSuccess
		}
	}
	return sum
}
