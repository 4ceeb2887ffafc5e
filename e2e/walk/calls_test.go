package walk

import "time"

// calls lists all calls of GitHub and VMs in walks by their names at the gate. A call that no walk makes is untested
// code of the model, so the walks must make every one, and a new one must be listed.
func calls() []string {
	return []string{
		// calls of tasks
		"permission", "react", "unreact", "thumbs", "comment", "edit", "find comments", "delete", "minimise", "read comment", "read text", "read issue",
		"blockers", "read discussion", "read plan", "read a comment again", "read files", "list files",
		// calls of sweeps
		"installations", "repositories", "list issues", "issue events", "failed deliveries", "read delivery", "list comments", "list reviews", "look for an installation",
		// branches and pull requests
		"read branch", "list branches", "compare", "read commit", "read tree", "publish", "move", "open pull", "reopen pull", "close pull", "find pull", "pull template", "read pull", "read merging", "update branch", "request review",
		"checks",
		"threads", "reply", "find reply", "find review", "read review", "start review", "submit review", "delete review", "read verdicts",
		// VMs and their runs
		"acquire VM", "release VM", "place", "prepare", "reset", "rebase", "collect", "attach tether", "start run", "ask for run", "stop run", "follow", "pack", "unpack",
	}
}

// updated returns GitHub's time of the last update of an issue or a pull request: of its text, comments, labels or
// assignees. A reaction does not count.
func (i *issue) updated() time.Time {
	at := later(i.created, i.closedAt)
	at = later(later(at, i.touched), i.text().at)
	for _, e := range i.events {
		at = later(at, e.at)
	}
	lists := [][]*comment{i.comments}
	if i.pull != nil {
		for _, v := range i.pull.reviews {
			at = later(at, v.At)
		}
		for _, th := range i.pull.threads {
			lists = append(lists, th.comments)
		}
	}
	for _, list := range lists {
		for _, c := range list {
			at = later(at, c.bodies[len(c.bodies)-1].at)
		}
	}
	return at
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
