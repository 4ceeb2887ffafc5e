package crash

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// person plays the demo's life with GitHub and the status page only, like people.
type person struct {
	life  *life
	issue int
	pull  int
}

func (p *person) ada() simgithub.Person { return p.life.world.GitHub.As(demo.Maintainer) }

// play acts from the opening of the issue to the task's end.
func (p *person) play(ctx context.Context) error {
	for _, step := range []func(context.Context) error{p.open, p.plans, p.review, p.end} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (p *person) open(context.Context) error {
	i, err := p.ada().OpenIssue(demo.Full, simgithub.NewIssue{Title: "Slugs end in a hyphen", Body: "When the title ends in punctuation."})
	if err != nil {
		return err
	}
	p.issue = i.Number
	return p.ada().Assign(demo.Full, p.issue, demo.Machine)
}

// plans requests a change of the first plan and approves the following plans.
func (p *person) plans(ctx context.Context) error {
	if _, err := p.comment(ctx, "Preliminary plan, revision 1"); err != nil {
		return err
	}
	if _, err := p.ada().Comment(demo.Full, p.issue, "Please do not trim afterwards."); err != nil {
		return err
	}
	for _, title := range []string{"Preliminary plan, revision 2", "## Plan, revision 1"} {
		c, err := p.comment(ctx, title)
		if err != nil {
			return err
		}
		if err := p.ada().React(demo.Full, c.ID, "+1"); err != nil {
			return err
		}
	}
	return nil
}

// review asks for changes in two threads and approves when they are answered.
func (p *person) review(ctx context.Context) error {
	if err := p.until(ctx, "the pull request", p.atRest); err != nil {
		return err
	}
	_, err := p.ada().Review(demo.Full, p.pull, simgithub.NewReview{Event: "REQUEST_CHANGES", Comments: []simgithub.NewReviewComment{
		{Path: "slug.go", Line: 13, Body: "Please keep the name `gap`."}, {Path: "slug_test.go", Line: 10, Body: "Can you add the empty title, too?"},
	}})
	if err != nil {
		return err
	}
	err = p.until(ctx, "the answers", func() (bool, error) {
		i, err := p.ada().Issue(demo.Full, p.pull)
		if err != nil {
			return false, err
		}
		answers := 0
		for _, th := range i.Pull.Threads {
			answers += len(th.Comments) - 1
		}
		if answers < 2 {
			return false, nil
		}
		return p.atRest()
	})
	if err != nil {
		return err
	}
	_, err = p.ada().Review(demo.Full, p.pull, simgithub.NewReview{Event: "APPROVE"})
	return err
}

// end merges and waits for the last comment on the issue.
func (p *person) end(ctx context.Context) error {
	if err := p.ada().Merge(demo.Full, p.pull, simgithub.Merge{}); err != nil {
		return err
	}
	return p.until(ctx, "the last comment", func() (bool, error) {
		i, err := p.ada().Issue(demo.Full, p.issue)
		if err != nil {
			return false, err
		}
		return slices.ContainsFunc(i.Comments, func(c *simgithub.Comment) bool { return strings.Contains(c.Body, "the task is done") }), nil
	})
}

// comment waits for a comment of errand's on the issue.
func (p *person) comment(ctx context.Context, text string) (found *simgithub.Comment, err error) {
	err = p.until(ctx, text, func() (bool, error) {
		i, err := p.ada().Issue(demo.Full, p.issue)
		if err != nil {
			return false, err
		}
		for _, c := range i.Comments {
			if c.Author != demo.Maintainer && strings.Contains(c.Body, text) {
				found = c
			}
		}
		return found != nil, nil
	})
	return found, err
}

// atRest reports whether the status page shows that the pull request waits for people. It returns false if the page
// does not answer because errand is dead.
func (p *person) atRest() (bool, error) {
	req, err := http.NewRequest(http.MethodGet, p.life.world.URL+"/status.json", http.NoBody)
	if err != nil {
		return false, err
	}
	req.Header.Set("Authorization", "Bearer "+demo.AdminToken)
	client := http.Client{Transport: webtest.Transport(), Timeout: 5 * time.Second}
	resp, err := client.Do(req)
	if err != nil {
		return false, nil
	}
	defer resp.Body.Close()
	var page struct {
		Tasks []struct {
			Phase string `json:"phase"`
			PR    *struct {
				Number int `json:"number"`
			} `json:"pull_request"`
		} `json:"tasks"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&page); err != nil || len(page.Tasks) == 0 || page.Tasks[0].PR == nil {
		return false, nil
	}
	p.pull = page.Tasks[0].PR.Number
	return page.Tasks[0].Phase == "pr_open", nil
}

// until waits for a condition.
func (p *person) until(ctx context.Context, what string, ok func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	pause := time.NewTicker(40 * time.Millisecond)
	defer pause.Stop()
	for {
		if yes, err := ok(); yes || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, ctx.Err())
		case <-pause.C:
		}
	}
}
