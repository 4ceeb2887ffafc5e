package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/errand-bot/errand/state"
)

// Unstarted is an open issue that had errand's label or assignee before errand watched its repository for that. errand starts only
// when somebody triggers it again, or an operator adopts it.
type Unstarted struct {
	Repo    string           `json:"repo"`
	Issue   int              `json:"issue"`
	Title   string           `json:"title"`
	URL     string           `json:"url,omitempty"`
	Trigger state.TriggerVia `json:"trigger"` // assigned or label
}

// maxUnstarted is the maximum number of such issues that the board lists.
const maxUnstarted = 100

// readUnstarted adds the issues with an old trigger that have no open task.
func (p *pages) readUnstarted(b *board) {
	if p.cfg.Unstarted == nil {
		return
	}
	type key struct {
		repo  string
		issue int
	}
	open := map[key]bool{}
	for _, c := range b.Tasks {
		open[key{c.Repo, c.Issue}] = true
	}
	for _, u := range p.cfg.Unstarted() {
		if open[key{u.Repo, u.Issue}] {
			continue
		}
		if b.UnstartedCount++; len(b.Unstarted) < maxUnstarted {
			b.Unstarted = append(b.Unstarted, u)
		}
	}
}

// A Refusal is the reason, for people, why an issue cannot be adopted.
type Refusal string

func (r Refusal) Error() string { return string(r) }

// adoptTime is the timeout for adopting one issue. GitHub is asked a few times.
const adoptTime = time.Minute

// adopt starts the task of an issue with an old trigger. It is for `errand adopt` and answers with one line of text: 200 if the task
// starts, 409 with the reason if it cannot, 502 if GitHub could not be asked.
func (p *pages) adopt(w http.ResponseWriter, r *http.Request) {
	number, err := strconv.Atoi(r.PathValue("n"))
	if err != nil || number <= 0 {
		http.Error(w, "errand: the number of the issue is not a number", http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), adoptTime)
	defer cancel()
	repo := r.PathValue("owner") + "/" + r.PathValue("repo")
	who, err := p.cfg.Adopt(ctx, repo, number)
	a := p.entry(r)
	a.Subject, a.Command, a.Result = fmt.Sprintf("%s#%d", repo, number), "adopt", "started: "+who
	a.Task = p.keyNamed(ctx, a.Subject)
	p.audited(ctx, a, err)
	var refusal Refusal
	switch {
	case errors.As(err, &refusal):
		http.Error(w, refusal.Error(), http.StatusConflict)
	case err != nil:
		p.cfg.Log.Warn().Err(err).Msg("failed to adopt an issue")
		http.Error(w, fmt.Sprintf("the issue could not be adopted: %v; try again", err), http.StatusBadGateway)
	default:
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, who+"\n")
	}
}
