package event

import "github.com/errand-bot/errand/state"

// The payloads of people's actions, which webhooks, polls and sweeps report.
type (
	// Triggered is an assignment, a label or a mention that asks errand to start: Event.Via.
	Triggered struct {
		Issue *state.Issue `json:"issue,omitempty"`
		Base  string       `json:"base,omitempty"` // the branch that the text names
	}

	// Untriggered is the removal of the assignment or the label: Event.Via.
	Untriggered struct{}

	// Commented is a comment on the issue or the pull request.
	Commented struct {
		Comment     *state.Comment `json:"comment,omitempty"`
		Orders      []state.Order  `json:"orders,omitempty"`
		Skipped     []string       `json:"left,omitempty"`  // further commands of the comment, as written, which are not carried out
		MoreSkipped int            `json:"more,omitempty"`  // the number of commands beyond Skipped
		Issue       *state.Issue   `json:"issue,omitempty"` // nil on a pull request
		Base        string         `json:"base,omitempty"`  // the branch that the text names
	}

	// IssueEdited is an edit of the issue's title or text.
	IssueEdited struct {
		Issue *state.Issue `json:"issue,omitempty"`
	}

	// IssueClosed is the closing of the issue.
	IssueClosed struct{}

	// IssueGone is the deletion or the transfer of the issue.
	IssueGone struct {
		Lost string `json:"lost,omitempty"` // how it became unreachable, a clause for people
	}

	// CommentEdited is somebody's edit of one of errand's comments.
	CommentEdited struct {
		Comment   *state.Comment   `json:"comment,omitempty"`
		Ticked    bool             `json:"ticked,omitempty"`     // the only change is the approval box, now ticked
		OnlyBoxes bool             `json:"only_boxes,omitempty"` // nothing but boxes changed
		Candidate *state.Candidate `json:"candidate,omitempty"`
	}

	// CommentDeleted is the deletion of a comment, errand's or somebody's.
	CommentDeleted struct {
		Comment *state.Comment `json:"comment,omitempty"`
	}

	// Thumb is a 👍 that the poll saw, either on a plan or on a comment of a user without write access.
	Thumb struct {
		Candidate *state.Candidate `json:"candidate,omitempty"`
		Comment   *state.Comment   `json:"comment,omitempty"`
	}

	// Reviewed is a submitted review.
	Reviewed struct {
		Review state.Review `json:"review"`
	}

	// PRClosed is the closing of the pull request.
	PRClosed struct {
		Merged bool `json:"merged,omitempty"`
	}

	// PRReopened says that a pull request is open again after it was closed.
	PRReopened struct {
		Number int    `json:"number,omitempty"`
		Head   string `json:"head,omitempty"` // its head commit
	}

	// Pushed is somebody's push to the task's branch.
	Pushed struct {
		Head string `json:"head,omitempty"` // the commit at the head of the branch
	}

	// BaseMoved is a hint that the task's branch may lack commits of its base, or conflict with them.
	BaseMoved struct{}

	// PRChanged is a hint that it may have changed whether the pull request can be merged: it is a draft or not any more, an approval was
	// dismissed, a thread was resolved, or a merge queue dropped it.
	PRChanged struct {
		Draft *bool `json:"draft,omitempty"` // whether it is a draft, nil if the event does not say
	}

	// ChecksChanged is a change of the checks of the pull request's head: a hint to read them.
	ChecksChanged struct{}

	// ConditionChanged says that a condition that the task waits for may have changed.
	ConditionChanged struct{}

	// AccessLost is the loss of the repository: the App was uninstalled or suspended, or no longer has access.
	AccessLost struct {
		Lost string `json:"lost,omitempty"` // how it became unreachable, a clause for people
	}

	// AccessRegained says that the App has access again: Event.Installation, perhaps Event.Repo.
	AccessRegained struct{}

	// Renamed is a new name or visibility of the repository, Event.Repo, or a new installation that reaches it.
	Renamed struct{}

	// Locked says that the issue's conversation was locked.
	Locked struct{}

	// Unlocked says that the issue's conversation was unlocked.
	Unlocked struct{}

	// Purged says that the operator wants the texts of the ended task to be deleted.
	Purged struct{}

	// Destroyed says that the operator wants the VM of the task, and its saved work, to be deleted.
	Destroyed struct {
		Force bool `json:"force,omitempty"` // also if an agent works on it
	}
)

// PersonCommand is OperatorCommand for a person who signed in on errand's pages, and who has write access according to GitHub now.
func PersonCommand(task state.TaskKey, id string, by state.Person, order state.Order, closed bool) Event {
	e := OperatorCommand(task, id, order, closed)
	e.By.ID, e.By.Login = by.ID, by.Login
	return e
}

// OperatorRun returns the event with which the operator of errand begins a task for an issue without one, and vouches for its title and
// text. The request's id makes it count once.
func OperatorRun(repo state.Repo, number int, id string, issue state.Issue) Event {
	return Event{
		Task: state.TaskKey{Repo: repo.ID, Issue: number}, ID: "operator:" + id, Via: state.TriggerOperator, By: state.Person{Operator: true},
		Permission: state.PermissionWrite, Repo: &repo, Payload: Triggered{Issue: &issue},
	}
}

// OperatorCommand returns the event of a command that the operator of errand gave, who counts as a person with write access. It is
// like a comment on the issue without an ID. The request's id makes it count once; closed reports whether the issue is closed.
func OperatorCommand(task state.TaskKey, id string, order state.Order, closed bool) Event {
	return Event{
		Task: task, ID: "operator:" + id, By: state.Person{Operator: true}, Permission: state.PermissionWrite,
		Payload: Commented{Comment: &state.Comment{Mention: true}, Orders: []state.Order{order}, Issue: &state.Issue{Closed: closed}},
	}
}
