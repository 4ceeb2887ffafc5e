package simgithub

import (
	"cmp"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// QueueEntry is the place of a pull request in the merge queue of its base.
type QueueEntry struct {
	ID         int64
	EnqueuedAt time.Time
	Enqueuer   string
	Jump       bool // it was put before all others

	rank int64 // the lowest is merged first
}

// queueBot is the account that merges the pull requests of merge queues.
const queueBot = "github-merge-queue[bot]"

// RequireMergeQueue sets whether pull requests can be merged into a branch only by its merge queue. The branch need not exist. When the
// queue ends, the pull requests in it stay open. GitHub has merge queues in repositories of organizations only; the simulator, in all.
func (s *Sim) RequireMergeQueue(repo, branch string, on bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.repos[repoKey(repo)]
	if !ok {
		return errNotFound()
	}
	queues := maps.Clone(r.MergeQueues)
	if queues == nil {
		queues = map[string]bool{}
	}
	if queues[branch] = on; !on {
		for _, p := range r.queue(branch) {
			s.session(s.users[r.Owner]).leaveQueue(p, "QUEUE_CLEARED")
		}
	}
	r.MergeQueues = queues
	return nil
}

// RunMergeQueue ends the first entry of a branch's merge queue, and returns the number of its pull request, which GitHub's account of
// merge queues merges. If failure is not empty, the pull request is removed from the queue for this reason instead, such as CI_FAILURE or
// CI_TIMEOUT; one that conflicts with its base is removed for MERGE_CONFLICT.
func (s *Sim) RunMergeQueue(repo, branch, failure string) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.repos[repoKey(repo)]
	if !ok {
		return 0, errNotFound()
	}
	list := r.queue(branch)
	if len(list) == 0 {
		return 0, errUnprocessable("The merge queue of %s is empty", branch)
	}
	p, x := list[0], s.session(s.addUser(queueBot, TypeBot))
	if failure == "" {
		err := x.refs().complete(p, Merge{Method: r.defaultMethod()})
		var refused *Error
		if !errors.As(err, &refused) {
			return p.issue.Number, err
		}
		failure = "MERGE_CONFLICT"
	}
	x.leaveQueue(p, failure)
	return p.issue.Number, nil
}

// queue returns the pull requests in the merge queue of a branch, the first one first.
func (r *Repo) queue(branch string) []*Pull {
	var list []*Pull
	for _, i := range r.Issues {
		if i.Pull != nil && i.Pull.Queued != nil && i.Pull.Base == branch {
			list = append(list, i.Pull)
		}
	}
	slices.SortFunc(list, func(a, b *Pull) int { return cmp.Compare(a.Queued.rank, b.Queued.rank) })
	return list
}

// defaultMethod returns the way to merge pull requests that comes first of those that are allowed.
func (r *Repo) defaultMethod() string {
	for _, method := range []string{"merge", "squash", "rebase"} {
		if r.allows(method) {
			return method
		}
	}
	return "merge"
}

// Enqueue adds a pull request to the merge queue of its base, before all others if it jumps.
func (p Person) Enqueue(repo string, number int, jump bool) error {
	return p.onPull(repo, number, func(x *session, pr *Pull) error {
		_, err := x.refs().enqueue(pr, "", jump)
		return err
	})
}

// Dequeue removes a pull request from the merge queue.
func (p Person) Dequeue(repo string, number int) error {
	return p.onPull(repo, number, func(x *session, pr *Pull) error {
		_, err := x.refs().dequeue(pr)
		return err
	})
}

// enqueue adds a pull request from which nothing is missing to the merge queue. If head is not empty, it must be the head.
func (u refs) enqueue(p *Pull, head string, jump bool) (*QueueEntry, error) {
	r := p.issue.repo
	if err := u.mayWritePull(r); err != nil {
		return nil, err
	}
	mergeable, _ := u.x.s.pulls.mergeability(p)
	switch {
	case !r.MergeQueues[p.Base]:
		return nil, errUnprocessable("The base branch does not require a merge queue")
	case p.Queued != nil:
		return nil, errUnprocessable("Pull request is already in the merge queue")
	case p.issue.State != "open", p.Draft, mergeable == false:
		return nil, errUnprocessable("Pull request is not mergeable")
	case head != "" && head != p.HeadSHA:
		return nil, errUnprocessable("The expected head OID does not match the head of the pull request")
	}
	if err := u.mayMergeChecks(p); err != nil {
		return nil, err
	}
	e := &QueueEntry{ID: u.x.s.newID(), EnqueuedAt: u.x.s.now(), Enqueuer: u.x.login(), Jump: jump}
	e.rank = e.ID
	if list := r.queue(p.Base); jump && len(list) > 0 {
		e.rank = list[0].Queued.rank - 1
	}
	p.Queued, p.issue.UpdatedAt = e, u.x.s.now()
	u.x.webhooks().pull("enqueued", p, nil)
	return e, nil
}

// dequeue removes a pull request from the merge queue, and returns its former entry.
func (u refs) dequeue(p *Pull) (*QueueEntry, error) {
	if err := u.mayWritePull(p.issue.repo); err != nil {
		return nil, err
	}
	e := p.Queued
	if e == nil {
		return nil, errUnprocessable("Pull request is not in the merge queue")
	}
	u.x.leaveQueue(p, "MANUAL")
	return e, nil
}

// leaveQueue removes a pull request from the merge queue, if it is there, for one of the reasons in GitHub's webhooks.
func (x *session) leaveQueue(p *Pull, reason string) {
	if p.Queued == nil {
		return
	}
	p.Queued, p.issue.UpdatedAt = nil, x.s.now()
	x.webhooks().pull("dequeued", p, obj{"reason": reason})
}

// mayMergeDirectly returns an error if the base of a pull request has a merge queue.
func (u refs) mayMergeDirectly(p *Pull) error {
	if p.issue.repo.MergeQueues[p.Base] {
		return &Error{Status: http.StatusMethodNotAllowed, Message: violation + "Changes must be made through the merge queue"}
	}
	return nil
}

// queueRule encodes the rule that a branch has a merge queue, with GitHub's default settings.
func (r *Repo) queueRule() obj {
	return obj{
		"type": "merge_queue", "ruleset_source_type": "Repository", "ruleset_source": r.FullName(), "ruleset_id": 1,
		"parameters": obj{
			"merge_method": strings.ToUpper(r.defaultMethod()), "grouping_strategy": "ALLGREEN", "check_response_timeout_minutes": 60,
			"max_entries_to_build": 5, "max_entries_to_merge": 5, "min_entries_to_merge": 1, "min_entries_to_merge_wait_minutes": 5,
		},
	}
}
