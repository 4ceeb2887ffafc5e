package purge

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/clock"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/store"
)

// numbered is a part of a webhook with a number.
type numbered struct {
	Number int `json:"number"`
}

// branched is a check or a suite of checks.
type branched struct {
	HeadBranch   string     `json:"head_branch"`
	PullRequests []numbered `json:"pull_requests"`
	CheckSuite   *branched  `json:"check_suite"`
}

// subject is the part of a webhook that names its subject.
type subject struct {
	Repository struct {
		ID int64 `json:"id"`
	} `json:"repository"`
	Ref         string    `json:"ref"`
	Issue       *numbered `json:"issue"`
	PullRequest *numbered `json:"pull_request"`
	CheckRun    *branched `json:"check_run"`
	CheckSuite  *branched `json:"check_suite"`
}

// isAbout reports whether a webhook is about the task's issue, one of its pull requests, or its branch.
func isAbout(t *state.Task, payload []byte) bool {
	var s subject
	if json.Unmarshal(payload, &s) != nil || s.Repository.ID != t.Key.Repo {
		return false
	}
	numbers := []int{t.Key.Issue}
	if t.PR != nil {
		numbers = append(numbers, t.PR.Number)
	}
	for _, r := range t.Replaced {
		numbers = append(numbers, r.Number)
	}
	has := func(n numbered) bool { return n.Number != 0 && slices.Contains(numbers, n.Number) }
	for _, n := range []*numbered{s.Issue, s.PullRequest} {
		if n != nil && has(*n) {
			return true
		}
	}
	branch := t.Branch.Name
	if branch != "" && strings.TrimPrefix(s.Ref, "refs/heads/") == branch {
		return true
	}
	for _, c := range []*branched{s.CheckRun, s.CheckSuite} {
		for ; c != nil; c = c.CheckSuite {
			if slices.ContainsFunc(c.PullRequests, has) || branch != "" && c.HeadBranch == branch {
				return true
			}
		}
	}
	return false
}

// arriving returns which text about the task, with these jobs, is stored and still to be applied, or "".
func (p *Purger) arriving(ctx context.Context, t *state.Task, jobs []state.Job) (what string, err error) {
	if slices.ContainsFunc(jobs, func(j state.Job) bool { return j.Kind == state.JobVet }) {
		return "the permission of a person who did something on the issue is still being read from GitHub", nil
	}
	err = p.cfg.Store.EachDelivery(ctx, false, func(d store.Delivery) error {
		if isAbout(t, d.Payload) {
			what = "a webhook about the issue is still to be applied"
		}
		return nil
	})
	return what, err
}

// awaitArrivals waits until the texts are applied that arrived while the task was being replaced, because the database has them until then. It
// deletes the webhooks that could not be applied, and returns their number.
func (p *Purger) awaitArrivals(ctx context.Context, t *state.Task) (dropped int, err error) {
	for waited := time.Duration(0); ; waited += pauseBetween {
		jobs, err := p.cfg.Store.Jobs(ctx, t.Key)
		if err != nil {
			return 0, err
		}
		what, err := p.arriving(ctx, t, jobs)
		if err != nil {
			return 0, err
		}
		if what == "" {
			break
		}
		if waited >= p.cfg.Patience {
			return 0, errors.New(what)
		}
		if err := clock.Sleep(ctx, pauseBetween); err != nil {
			return 0, err
		}
	}
	if over, err := p.isOver(ctx, t.Key); !over {
		return 0, err // they may be about the next life
	}
	return p.dropWebhooks(ctx, t)
}

// dropWebhooks deletes the webhooks about a task that could not be applied, and returns their number.
func (p *Purger) dropWebhooks(ctx context.Context, t *state.Task) (dropped int, err error) {
	err = p.cfg.Store.EachDelivery(ctx, true, func(d store.Delivery) error {
		if !isAbout(t, d.Payload) {
			return nil
		}
		if err := p.cfg.Store.SpendDelivery(ctx, d.GUID); err != nil && !errors.Is(err, store.ErrSpent) {
			return err
		}
		dropped++
		return nil
	})
	return dropped, err
}
