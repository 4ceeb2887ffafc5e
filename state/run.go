package state

import "time"

// RunKind is what a run is for. It is also the name of its prompt.
type RunKind string

// The kinds of runs.
const (
	RunPreliminary RunKind = "preliminary_plan"
	RunPlan        RunKind = "plan"
	RunImplement   RunKind = "implement"
	RunCheck       RunKind = "check" // the repository's own commands, no agent
	RunReview      RunKind = "review"
)

// RunState is where a run is.
type RunState string

// The states of a run.
const (
	// RunLaunching: the job launch brings up the VM and starts it. After a crash launch is repeated;
	// starting a known id again changes nothing.
	RunLaunching RunState = "launching"
	// RunActive: it goes on, detached, on its VM; a supervisor follows its log. After a crash of
	// ours the supervisor follows from the last stored line.
	RunActive RunState = "active"
	// RunStopping: somebody cancelled; the job stop ends it and saves its work.
	RunStopping RunState = "stopping"
	// RunEnded: its exit is known. Never left.
	RunEnded RunState = "ended"
)

// Run is one agent invocation (or one round of checks) on a VM. Its fields are grouped in embedded structs; in JSON all of
// them are fields of the run itself.
type Run struct {
	ID      string    `json:"id"` // TASK-SEQ, also the name of its folder on the VM
	Kind    RunKind   `json:"kind"`
	State   RunState  `json:"state"`
	Seq     int       `json:"seq"`
	Started time.Time `json:"started,omitzero"`
	Ended   time.Time `json:"ended,omitzero"`

	RunLaunch
	RunActivity
	RunUsage
	RunVerdict
}

// RunLaunch is how a run was started: where, with which agent, and what for.
type RunLaunch struct {
	VM      string `json:"vm,omitempty"`
	Adapter string `json:"adapter,omitempty"`
	Model   string `json:"model,omitempty"`
	Session string `json:"session,omitempty"` // the agent's own session, for resuming
	Round   int    `json:"round,omitempty"`   // of a review
	Plan    string `json:"plan,omitempty"`    // hash of the plan it works on
	// MaxTurns is how many answers of the model the gateway admits; 0 leaves it to the agent.
	MaxTurns int `json:"max_turns,omitempty"`
	// TurnLimit is the number of turns that the agent was told.
	TurnLimit int `json:"turn_limit,omitempty"`
	// Attempt counts launches of the same work in a row that did not end well.
	Attempt int `json:"attempt,omitempty"`
	// Notes list what its prompt carries besides the plan, such as files that changed since.
	Notes []string `json:"notes,omitempty"`
	// Repair is the answer whose closing block it only repeats; nil for every other run.
	Repair *Repair `json:"repair,omitempty"`
	// Repeat is why an equal run had to be made again, empty for the first.
	Repeat string `json:"repeat,omitempty"`
}

// RunActivity is what the run's log shows.
type RunActivity struct {
	LastSeq int64     `json:"last_seq"` // last stored line of its log
	Sign    time.Time `json:"sign,omitzero"`
	Doing   string    `json:"doing,omitempty"` // the latest action, one line
	Turns   int       `json:"turns,omitempty"`
	Refused int       `json:"refused,omitempty"` // calls that the rules of its agent's program refused
	// Calls are the ids of the calls of errand's tools, while the run lasts.
	Calls []string `json:"calls,omitempty"`
	Reads int      `json:"reads,omitempty"` // how often its agent asked for context
	// Said is the agent's last message, for the prompt of a run that continues in a new session.
	Said string `json:"said,omitempty"`
}

// RunUsage is what a run used of the model, and whether the gateway refused it.
type RunUsage struct {
	Money Money `json:"money"`
	// Metered reports that the gateway counted Money; otherwise it is what the agent reported.
	Metered bool `json:"metered,omitempty"`
	// Answers counts the answers of the model that the gateway accounted for.
	Answers int `json:"answers,omitempty"`
	// Used is the usage that the agent reported, for comparison with Money; nil if it reported none.
	Used *Usage `json:"used,omitempty"`
	// Held is why the gateway refused it the model although the task has money left.
	Held *Waiting `json:"held,omitempty"`
	// Denied is why the gateway refused the run's last call of the model, if the reason concerned this call alone; empty
	// if the model has answered since.
	Denied string `json:"denied,omitempty"`
	// Unfinished is set if the model's last answer has no end, and the run's program does not report that.
	Unfinished *Waiting `json:"unfinished,omitempty"`
}

// RunVerdict is how a run ended.
type RunVerdict struct {
	// Told reports that the run's result has arrived.
	Told    bool   `json:"told,omitempty"`
	Status  string `json:"status,omitempty"`  // the adapter's judgment: ok, max_turns, crashed …
	Class   string `json:"class,omitempty"`   // success, retryable, fatal
	Message string `json:"message,omitempty"` // one sentence
	// Checked is the result of a run of the repository's commands; nil for others, and if they could not be run.
	Checked *Checked `json:"checked,omitempty"`
	// Concluded is the conclusion that the agent reported through a tool.
	Concluded *Conclusion `json:"concluded,omitempty"`
}

// Usage counts tokens as agents do. Input excludes what was read from or written to a cache.
type Usage struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cache_read,omitempty"`
	CacheWrite int64 `json:"cache_write,omitempty"`
}

// StatusVMLost is the status of a run whose VM is gone. StatusNoSession says that the session to be
// resumed was not there. The other statuses are the adapter's.
const (
	StatusVMLost    = "vm_lost"
	StatusNoSession = "no_session"
)

// RunResult is what a supervisor reports at the end of a run, judged by the agent's adapter.
type RunResult struct {
	Status string `json:"status"`
	Class  string `json:"class"`
	// VMEnd is why a VM that is lost (StatusVMLost) is given up, of the list of VM.Why; empty if nothing says why.
	VMEnd   string `json:"vm_end,omitempty"`
	Message string `json:"message,omitempty"` // one sentence for people, in errand's words
	// ProgramError is what the agent's program said of its failure, RunnerNote what the runner on the VM did. They are for
	// the log and the transcript: people never read them, and they are not stored with the task.
	ProgramError string    `json:"program_error,omitempty"`
	RunnerNote   string    `json:"runner_note,omitempty"`
	Session      string    `json:"session,omitempty"`
	Turns        int       `json:"turns,omitempty"`
	Refused      int       `json:"refused,omitempty"` // calls that the rules of the agent's program refused
	Money        Money     `json:"money"`
	Used         *Usage    `json:"used,omitempty"` // what Money was made of, if the agent said it
	LastSeq      int64     `json:"last_seq"`
	Ended        time.Time `json:"ended"`
	RetryAt      time.Time `json:"retry_at,omitzero"` // when a limit ends, if known
	Text         string    `json:"text,omitempty"`    // the agent's last words, Markdown, redacted
	Outcome      string    `json:"outcome,omitempty"` // build, report, question, blocked, done …
	// Broken is why the closing block cannot be read, empty if it can. Outcome is then what could be told of it, or
	// with Guess the likeliest. Block is the block as it was written, as far as it is kept.
	Broken   string   `json:"broken,omitempty"`
	Guess    bool     `json:"guess,omitempty"`
	Block    string   `json:"block,omitempty"`
	Title    string   `json:"title,omitempty"`
	Summary  string   `json:"summary,omitempty"`
	Changes  string   `json:"changes,omitempty"`
	Question string   `json:"question,omitempty"`
	Files    []string `json:"files,omitempty"`
	Estimate string   `json:"estimate,omitempty"`
	// Approaches are the titles of a preliminary plan's numbered approaches.
	Approaches []string       `json:"approaches,omitempty"`
	Threads    []ThreadAnswer `json:"threads,omitempty"`
	Checks     []CheckResult  `json:"checks,omitempty"`
}

// ThreadAnswer is the agent's answer to one piece of feedback.
type ThreadAnswer struct {
	ID     string `json:"id"` // Feedback.ID
	Answer string `json:"answer"`
	Commit string `json:"commit,omitempty"` // local id; mapped before it is posted
}

// CheckResult is one of the repository's own commands.
type CheckResult struct {
	Name     string        `json:"name"`
	Command  string        `json:"command"`
	Code     int           `json:"code"`
	TimedOut bool          `json:"timed_out,omitempty"`
	Skipped  string        `json:"skipped,omitempty"` // why it was not run; Code is 0 then
	Duration time.Duration `json:"duration"`
	Tail     string        `json:"tail,omitempty"`
}

// VM is the machine of a task, as the task knows it.
type VM struct {
	Name      string    `json:"name"`
	Provider  string    `json:"provider"`
	Kind      string    `json:"kind"` // bwrap, userns, plain; a server type of a cloud
	Gen       int       `json:"gen"`  // grows with each VM of the task
	CreatedAt time.Time `json:"created_at,omitzero"`
	// Paid is the span that is paid for at once, counted from CreatedAt, such as an hour; zero for VMs
	// that cost nothing. MicroHour is what one of them costs in millionths of Currency.
	Paid      time.Duration `json:"paid,omitempty"`
	MicroHour int64         `json:"micro_hour,omitempty"`
	Currency  string        `json:"currency,omitempty"`
	// PutAway is how long it has lately taken, in 95 of 100 cases, to put such a VM to sleep; zero if that is
	// quick or not known.
	PutAway time.Duration `json:"put_away,omitempty"`
	// Carries names VMs of the task whose work was brought onto this one.
	Carries []string  `json:"carries,omitempty"`
	EndedAt time.Time `json:"ended_at,omitzero"`
	Why     string    `json:"why,omitempty"` // why it ended, one of a closed list
}

// Branch is the task's branch.
type Branch struct {
	Name    string `json:"name,omitempty"`
	Base    string `json:"base,omitempty"`     // the branch that it goes into
	BaseSHA string `json:"base_sha,omitempty"` // where it started
	// BaseAt is when the job start found BaseSHA to be the base's newest commit; zero once a run began.
	BaseAt time.Time `json:"base_at,omitzero"`
	Head   string    `json:"head,omitempty"` // as published, empty before
	Tree   string    `json:"tree,omitempty"`
	// Root is the commit that unpublished work on the VM begins at: published, and in the VM's
	// checkout. Head is newer if somebody pushed meanwhile; then the work is rebased first.
	Root string `json:"root,omitempty"`
	// VMHead is the published commit that the VM's checkout was last put on, or that unpublished work in it builds on.
	VMHead string `json:"vm_head,omitempty"`
}

// Work is a changeset on its way to GitHub. The data lies in a file (Ref); this is its state.
type Work struct {
	Run       string            `json:"run"`
	Ref       string            `json:"ref"`  // names the stored changeset
	Base      string            `json:"base"` // local and published alike
	LocalHead string            `json:"local_head"`
	LocalTree string            `json:"local_tree"`
	Commits   int               `json:"commits"`
	Paths     int               `json:"paths"`
	Head      string            `json:"head,omitempty"` // published id, set by the job commit
	Tree      string            `json:"tree,omitempty"`
	IDs       map[string]string `json:"ids,omitempty"` // local → published
	Rebases   int               `json:"rebases,omitempty"`
	Notes     []string          `json:"notes,omitempty"`
	// Approved is the hash of the PlanPublish by which people let it be published.
	Approved string `json:"approved,omitempty"`
	// What the agent said about it, kept until it is posted.
	Answers []ThreadAnswer `json:"answers,omitempty"`
	Summary string         `json:"summary,omitempty"`
	Title   string         `json:"title,omitempty"`
	Text    string         `json:"text,omitempty"`
	Checks  []CheckResult  `json:"checks,omitempty"` // of this tree
}

// SavedWork is work that was kept when a run was cut short.
type SavedWork struct {
	Run string    `json:"run"`
	Ref string    `json:"ref"`
	At  time.Time `json:"at"`
	Why string    `json:"why"`
}

// PR is the task's pull request.
type PR struct {
	Number int    `json:"number"`
	Node   string `json:"node"`
	URL    string `json:"url"`
	Title  string `json:"title"`
	Draft  bool   `json:"draft,omitempty"`
	State  string `json:"state"` // open, merged, closed
	Checks string `json:"checks,omitempty"`
	Ready  bool   `json:"ready,omitempty"` // approved, ready to merge
	// ReadyBy approved it without text.
	ReadyBy string `json:"ready_by,omitempty"`
}

// StatusComment is the one comment that is edited in place.
type StatusComment struct {
	Comment int64     `json:"comment,omitempty"`
	Node    string    `json:"node,omitempty"`
	URL     string    `json:"url,omitempty"`
	Shown   int64     `json:"shown"` // Task.Visible that it shows
	At      time.Time `json:"at,omitzero"`
	Failed  int       `json:"failed,omitempty"` // how often it could not be written since the end, in a row
}

// Posted is a comment that the bot wrote.
type Posted struct {
	Key  string    `json:"key"` // the job's idempotency key, also in the comment's marker
	Kind string    `json:"kind"`
	ID   int64     `json:"id"`
	Node string    `json:"node,omitempty"`
	URL  string    `json:"url"`
	At   time.Time `json:"at"`
	OnPR bool      `json:"on_pr,omitempty"`
	// Number is the pull request that it is on.
	Number int `json:"number,omitempty"`
}
