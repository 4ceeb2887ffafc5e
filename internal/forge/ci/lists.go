package ci

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/internal/forge/client"
	"github.com/errand-bot/errand/internal/forge/green"
)

// CommitChecks returns the newest check runs and statuses of a commit, a branch or a tag, by name, without those that the App may not read.
// It is unknown which of them are required, and to which workflows they belong.
func (k *Checker) CommitChecks(ctx context.Context, r client.Repo, ref string) ([]green.Check, error) {
	op, err := k.client.Read(ctx, r.Installation, "list checks", "of "+ref+" in "+r.FullName())
	if err != nil {
		return nil, err
	}
	list, err := List(op, r, ref)
	if err != nil {
		return nil, op.Wrap(err)
	}
	return green.Newest(list), nil
}

// List returns the newest check runs of all check suites of a commit, which a branch or a tag may name, and its newest statuses, by REST. It
// omits those that the App may not read.
func List(op *client.Operation, r client.Repo, ref string) ([]green.Check, error) {
	var list []green.Check
	var runs []*github.CheckRun
	commit := fmt.Sprintf("repos/%s/%s/commits/%s", r.Owner, r.Name, url.PathEscape(ref))
	err := client.Pages(func(page int) (int, error) {
		var answer github.ListCheckRunsResults
		next, err := op.Get(fmt.Sprintf("%s/check-runs?filter=latest&per_page=100&page=%d", commit, page), &answer)
		runs = append(runs, answer.CheckRuns...)
		return next, err
	})
	if err != nil && !client.NotGranted(err) {
		return nil, err
	}
	for _, run := range runs {
		k := Run(run.GetName(), run.GetStatus(), run.GetConclusion())
		k.ID, k.App, k.URL, k.Summary = run.GetID(), run.GetApp().GetID(), run.GetHTMLURL(), run.GetOutput().GetTitle()
		k.Group = strconv.FormatInt(run.GetCheckSuite().GetID(), 10)
		k.Started, k.Changed = run.GetStartedAt().Time, Latest(run.GetStartedAt().Time, run.GetCompletedAt().Time)
		list = append(list, k)
	}
	var statuses []*github.RepoStatus
	err = client.Pages(func(page int) (int, error) {
		var answer github.CombinedStatus
		next, err := op.Get(fmt.Sprintf("%s/status?per_page=100&page=%d", commit, page), &answer)
		statuses = append(statuses, answer.Statuses...)
		return next, err
	})
	if err != nil && !client.NotGranted(err) {
		return nil, err
	}
	for _, s := range statuses {
		k := Status(s.GetContext(), s.GetState(), s.GetCreatedAt().Time)
		k.URL, k.Summary = s.GetTargetURL(), s.GetDescription()
		list = append(list, k)
	}
	return list, nil
}

// Run returns a check run. Conclusions that are not known yet are failures.
func Run(name, status, conclusion string) green.Check {
	c := green.Check{Name: name, State: green.Failure, Result: lower(conclusion)}
	switch {
	case !strings.EqualFold(status, "completed"):
		c.State, c.Result = green.Pending, lower(status)
	case slices.Contains([]string{"success", "neutral", "skipped"}, c.Result):
		c.State = green.Success
	}
	return c
}

// Status returns a commit status.
func Status(name, state string, at time.Time) green.Check {
	c := green.Check{Name: name, Status: true, State: green.Failure, Result: lower(state), Started: at, Changed: at}
	switch c.Result {
	case "success":
		c.State = green.Success
	case "pending", "expected":
		c.State, c.Expected = green.Pending, c.Result == "expected"
	}
	return c
}

// lower returns one of GitHub's enumerated words for people.
func lower(word string) string { return strings.ReplaceAll(strings.ToLower(word), "_", " ") }

// Latest returns the latest of some times.
func Latest(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }
