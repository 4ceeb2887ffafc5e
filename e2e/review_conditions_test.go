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
