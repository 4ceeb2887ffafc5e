package e2e

import (
	"strconv"
	"strings"

	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// threadAnswers=N,M counts errand's answers in each thread, in order.
func threadAnswers(o seen, want string) (string, bool) {
	i := o.pull()
	if i == nil {
		return "no pull request", false
	}
	var list []string
	for _, th := range i.Pull.Threads {
		n := 0
		for _, c := range th.Comments {
			if c.Author == o.s.w.GitHub.App().BotLogin && !i.Pull.IsPending(c) {
				n++
			}
		}
		list = append(list, strconv.Itoa(n))
	}
	got := strings.Join(list, ",")
	return got, got == want
}

// ownReviews=N counts errand's submitted reviews of the pull request.
func ownReviews(o seen, want string) (string, bool) {
	i := o.pull()
	if i == nil {
		return "no pull request", false
	}
	n := 0
	for _, v := range i.Pull.Reviews {
		if v.Author == o.s.w.GitHub.App().BotLogin && v.State != simgithub.ReviewPending {
			n++
		}
	}
	return count(n, want)
}

// resolved=N counts the resolved threads of the pull request.
func resolved(o seen, want string) (string, bool) {
	i := o.pull()
	if i == nil {
		return "no pull request", false
	}
	n := 0
	for _, th := range i.Pull.Threads {
		if th.Resolved {
			n++
		}
	}
	return count(n, want)
}

// posted returns how many comments errand has posted on an issue or a pull request, including those that it deleted. A review
// with its answers is none.
func (s *story) posted(number int) int {
	n := len(s.byBot(number))
	if i := s.repo().Issues[number]; i != nil {
		for _, e := range i.Events {
			if e.Event == "comment_deleted" && e.Actor == s.w.GitHub.App().BotLogin {
				n++
			}
		}
	}
	return n
}

// pullPosted=N counts the comments that errand has posted on the pull request; see posted.
func pullPosted(o seen, want string) (string, bool) {
	i := o.pull()
	if i == nil {
		return "no pull request", false
	}
	return count(o.s.posted(i.Number), want)
}

// pullComment=REGEXP matches the comments that errand has on the pull request.
func pullComment(o seen, want string) (string, bool) {
	i := o.pull()
	if i == nil {
		return "no pull request", false
	}
	return anyBody(o.s.byBot(i.Number), want)
}
