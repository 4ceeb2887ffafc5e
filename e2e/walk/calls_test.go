package walk

import "time"

// calls are all that errand may ask of GitHub and of VMs in a walk, by the words that the gate is passed with. A call
// that no walk makes is code of the model that proves nothing, so every one is wanted, and a new one has to be listed.
func calls() []string {
	return []string{
		// the tasks' own
		"permission", "react", "thumbs", "comment", "edit", "find comments", "delete", "minimise", "read comment", "read text", "read issue",
		"blockers", "read discussion", "read plan", "read a comment again", "read files",
		// the sweeps'
		"installations", "repositories", "list issues", "issue events", "failed deliveries", "read delivery", "list comments", "list reviews", "look for an installation",
		// branches and pull requests
		"read branch", "list branches", "compare", "read tree", "publish", "move", "open pull", "pull template", "read pull", "request review",
		"threads", "reply", "find reply",
		// VMs and what runs there
		"acquire VM", "release VM", "place", "prepare", "reset", "rebase", "collect", "attach tether", "start run", "ask for run", "stop run", "follow", "pack", "unpack",
	}
}

// updated is when GitHub last noted a change of an issue or a pull request: of its text, of what is said there, of
// its labels and its assignees. A reaction is none.
func (i *issue) updated() time.Time {
	at := later(i.created, i.closedAt)
	at = later(at, i.text().at)
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
