package walk

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/state"
)

// hook is a webhook in transit.
type hook struct {
	guid, event string
	payload     []byte
	at, due     time.Time
	through     bool // an attempt was accepted
	lost        bool // permanently: GitHub itself forgot it
}

// tell sends a webhook, which arrives a second later unless it has a mishap.
func (h *hub) tell(event string, v any) *hook {
	data, err := json.Marshal(v)
	if err != nil {
		h.w.fatalf("encode a webhook: %v", err)
	}
	h.guids++
	k := &hook{guid: fmt.Sprintf("guid-%d", h.guids), event: event, payload: data, at: h.w.now, due: h.w.now.Add(time.Second)}
	switch m := h.w.mishap; m.kind {
	case "lost":
		k.lost = true
	case "failed":
		k.due = time.Time{}
		h.failed = append(h.failed, k)
	case "late":
		k.due = h.w.now.Add(m.by)
	case "twice":
		twin := *k
		twin.due = h.w.now.Add(m.by)
		h.hooks = append(h.hooks, &twin)
	}
	if h.w.mishap.kind != "" {
		h.w.troubled()
	}
	if h.w.mishap.more--; h.w.mishap.more < 0 {
		h.w.mishap = mishap{}
	}
	if !k.lost && !k.due.IsZero() {
		h.hooks = append(h.hooks, k)
	}
	return k
}

// mishap is a failure of the next webhook, and of some that follow it.
type mishap struct {
	kind string
	by   time.Duration
	more int // number of affected webhooks after the first
}

// deliver delivers the webhooks that are due; errand may be down. It reports whether there were any.
func (h *hub) deliver() bool {
	any := false
	for i := 0; i < len(h.hooks); i++ {
		k := h.hooks[i]
		if k.due.After(h.w.now) {
			continue
		}
		h.hooks = append(h.hooks[:i], h.hooks[i+1:]...)
		i--
		any = true
		if !h.w.errand.receive(k) {
			h.failed = append(h.failed, k)
			h.w.troubled()
		}
	}
	return any
}

func (h *hub) nextHook() (at time.Time) {
	for _, k := range h.hooks {
		if at.IsZero() || k.due.Before(at) {
			at = k.due
		}
	}
	return at
}

func p[T any](v T) *T { return &v }

func stamp(t time.Time) *github.Timestamp { return &github.Timestamp{Time: t} }

func (h *hub) repoJSON() *github.Repository {
	return &github.Repository{ID: p(h.repo), Name: p(repoName), Owner: &github.User{Login: p(owner)}, DefaultBranch: p(mainBranch), HTMLURL: p("https://github.test/" + owner + "/" + repoName)}
}

func userJSON(a *account) *github.User {
	who := personOf(a)
	kind := "User"
	if who.Bot {
		kind = "Bot"
	}
	return &github.User{ID: p(who.ID), Login: p(who.Login), Type: p(kind)}
}

func (i *issue) json() *github.Issue {
	state := "open"
	if i.closed {
		state = "closed"
	}
	t := i.text()
	out := &github.Issue{Number: p(i.number), NodeID: p(i.node), Title: p(t.title), Body: p(t.body), State: p(state), User: userJSON(i.author), CreatedAt: stamp(i.created), UpdatedAt: stamp(t.at)}
	for _, l := range i.labels {
		out.Labels = append(out.Labels, &github.Label{Name: p(l)})
	}
	if i.pull != nil {
		out.PullRequestLinks = &github.PullRequestLinks{URL: p("x")}
	}
	return out
}

// onIssue sends an issues webhook.
func (h *hub) onIssue(i *issue, by *account, action string, more func(*github.IssuesEvent)) *hook {
	e := &github.IssuesEvent{Action: p(action), Issue: i.json(), Repo: h.repoJSON(), Sender: userJSON(by), Installation: &github.Installation{ID: p(int64(installation))}}
	e.Issue.UpdatedAt = stamp(h.clock())
	if more != nil {
		more(e)
	}
	return h.tell("issues", e)
}

func (c *comment) json() *github.IssueComment {
	return &github.IssueComment{ID: p(c.id), NodeID: p(c.node), Body: p(c.body()), User: userJSON(c.author), CreatedAt: stamp(c.created), UpdatedAt: stamp(c.bodies[len(c.bodies)-1].at)}
}

// onComment sends an issue_comment webhook.
func (h *hub) onComment(c *comment, by *account, action, before string) *hook {
	e := &github.IssueCommentEvent{Action: p(action), Issue: c.on.json(), Comment: c.json(), Repo: h.repoJSON(), Sender: userJSON(by), Installation: &github.Installation{ID: p(int64(installation))}}
	if action == "edited" {
		e.Changes = &github.EditChange{Body: &github.EditBody{From: p(before)}}
	}
	return h.tell("issue_comment", e)
}

func (i *issue) pullJSON(h *hub) *github.PullRequest {
	return &github.PullRequest{Number: p(i.number), Merged: p(i.pull.merged), ClosedAt: stamp(i.closedAt), UpdatedAt: stamp(i.updated()), Head: &github.PullRequestBranch{Ref: p(i.pull.head), SHA: p(h.branches[i.pull.head])}}
}

func (h *hub) onPull(i *issue, by *account, action string) {
	h.tell("pull_request", &github.PullRequestEvent{Action: p(action), Number: p(i.number), PullRequest: i.pullJSON(h), Repo: h.repoJSON(), Sender: userJSON(by)})
}

func (h *hub) onReview(i *issue, by *account, verdict, words string) {
	v := forge.Review{By: by.Person, Review: state.Review{ID: h.id(), State: state.ReviewState(verdict), Body: words, At: h.clock(), Head: h.branches[i.pull.head]}}
	i.pull.reviews = append(i.pull.reviews, v)
	h.w.model.reviewed(i, by, v.ID)
	h.tell("pull_request_review", &github.PullRequestReviewEvent{
		Action: p("submitted"), PullRequest: i.pullJSON(h), Repo: h.repoJSON(), Sender: userJSON(by),
		Review: &github.PullRequestReview{ID: p(v.ID), User: userJSON(by), State: p(verdict), Body: p(words), SubmittedAt: stamp(h.clock())},
	})
}

func (h *hub) onPush(branch string, by *account, before, after string) {
	h.tell("push", &github.PushEvent{
		Ref: p("refs/heads/" + branch), Before: p(before), After: p(after), Deleted: p(after == ""), Repo: &github.PushEventRepository{ID: p(h.repo), DefaultBranch: p(mainBranch)},
		Sender: userJSON(by), Commits: []*github.HeadCommit{{Modified: []string{".errand.yml"}}},
	})
}
