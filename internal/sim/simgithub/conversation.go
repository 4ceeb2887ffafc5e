package simgithub

import (
	"cmp"
	"slices"
	"time"

	"github.com/errand-bot/errand/internal/sim/simgithub/git"
)

// Entry is an element of the conversation of an issue or pull request. Exactly one of its pointers is set.
type Entry struct {
	At      time.Time
	Comment *Comment
	Event   *Event
	Review  *Review
	Thread  *Thread // at the time of its first comment
}

// Conversation returns comments, events, reviews and threads in the order in which they happened.
func (i *Issue) Conversation() []Entry {
	type placed struct {
		id int64
		e  Entry
	}
	var list []placed
	for _, k := range i.Comments {
		list = append(list, placed{k.ID, Entry{At: k.CreatedAt, Comment: k}})
	}
	for _, e := range i.Events {
		list = append(list, placed{e.ID, Entry{At: e.CreatedAt, Event: e}})
	}
	if i.Pull != nil {
		for _, v := range i.Pull.Reviews {
			list = append(list, placed{v.ID, Entry{At: v.SubmittedAt, Review: v}})
		}
		for _, t := range i.Pull.Threads {
			list = append(list, placed{t.Comments[0].ID, Entry{At: t.Comments[0].CreatedAt, Thread: t}})
		}
	}
	slices.SortFunc(list, func(a, b placed) int { return cmp.Compare(a.id, b.id) })
	out := make([]Entry, 0, len(list))
	for _, p := range list {
		out = append(out, p.e)
	}
	return out
}

// ReactToReviewComment adds a reaction to a comment of a thread. GitHub sends no webhook for it.
func (p Person) ReactToReviewComment(repo string, number int, id int64, content string) error {
	return p.onReviewComment(repo, number, id, func(x *session, k *ReviewComment) error {
		_, _, err := x.react(k.thread.pull.issue, &k.Reactions, content)
		return err
	})
}

// UnreactToReviewComment removes a reaction to a comment of a thread.
func (p Person) UnreactToReviewComment(repo string, number int, id int64, content string) error {
	return p.onReviewComment(repo, number, id, func(x *session, k *ReviewComment) error {
		return x.unreact(k.thread.pull.issue, &k.Reactions, 0, content)
	})
}

// EditReviewComment changes a comment of a thread. Comments of others need write access.
func (p Person) EditReviewComment(repo string, number int, id int64, body string) error {
	return p.onReviewComment(repo, number, id, func(x *session, k *ReviewComment) error { return x.reviews().editComment(k, body) })
}

// MinimizeReviewComment hides a comment of a thread. GitHub sends no webhook for it.
func (p Person) MinimizeReviewComment(repo string, number int, id int64) error {
	return p.onReviewComment(repo, number, id, func(x *session, k *ReviewComment) error {
		if err := x.own(k.thread.pull.issue, k.Author); err != nil {
			return err
		}
		k.Minimized = true
		return nil
	})
}

// DeleteReviewComment deletes a comment of a thread, and the thread with its last comment.
func (p Person) DeleteReviewComment(repo string, number int, id int64) error {
	return p.onReviewComment(repo, number, id, func(x *session, k *ReviewComment) error { return x.reviews().deleteComment(k) })
}

func (p Person) onReviewComment(repo string, number int, id int64, act func(*session, *ReviewComment) error) error {
	return p.onPull(repo, number, func(x *session, pr *Pull) error {
		k, ok := x.s.nodes[nodeID("PRRC", id)].(*ReviewComment)
		if !ok || k.thread.pull != pr {
			return errNotFound()
		}
		return act(x, k)
	})
}

// CommitFiles returns a commit with the files that differ from its first parent.
func (p Person) CommitFiles(repo, rev string) (out CommitView, files []git.FileChange, err error) {
	err = p.do(func(x *session) error {
		r, err := x.repo(repo)
		if err != nil {
			return err
		}
		k := r.Git.Commit(rev)
		if k == nil {
			return errNotFound()
		}
		parent := ""
		if len(k.Parents) > 0 {
			parent = k.Parents[0]
		}
		out = x.s.commitView(*k)
		files, err = r.Git.Diff(parent, k.SHA)
		return err
	})
	return out, files, err
}
