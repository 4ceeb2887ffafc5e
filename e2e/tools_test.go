package e2e

import (
	"regexp"
)

// issuesMade=N counts the issues that the bot opened; issuesMade=/RE/ searches them for a text.
func issuesMade(o seen, want string) (string, bool) {
	n := 0
	for _, i := range o.s.repo().Issues {
		if i.Author != o.s.w.GitHub.App().BotLogin || i.Pull != nil {
			continue
		}
		n++
		if len(want) > 2 && want[0] == '/' && regexp.MustCompile(want[1:len(want)-1]).MatchString(i.Title+"\n"+i.Body) {
			return want, true
		}
	}
	return count(n, want)
}

// notes=N counts the notes that agents stored.
func notes(o seen, want string) (string, bool) {
	if o.t == nil {
		return "no task", false
	}
	return count(len(o.t.Notes), want)
}
