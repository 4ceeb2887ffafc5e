package state

import (
	"fmt"
	"time"
)

// RunKind is the purpose of a run. It is also the name of its prompt.
type RunKind string

// The kinds of runs.
const (
	RunPreliminary RunKind = "preliminary_plan"
	RunPlan        RunKind = "plan"
	RunImplement   RunKind = "implement"
	RunCheck       RunKind = "check" // the repository's own commands, no agent
	RunReview      RunKind = "review"
)

// RunState is the state of a run.
type RunState string

// The states of a run.
const (
	// RunLaunching: the job launch brings up the VM and starts it. After a crash launch is repeated;
	// starting a known id again changes nothing.
	RunLaunching RunState = "launching"
	// RunActive: it continues, detached, on its VM; a supervisor follows its log. After a crash of
	// errand the supervisor continues after the last stored line.
	RunActive RunState = "active"
	// RunStopping: it was canceled; the job stop ends it and saves its work.
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

// RunLaunch describes the start of a run: its VM, agent, session and purpose.
type RunLaunch struct {
	VM      string `json:"vm,omitempty"`
	Adapter string `json:"adapter,omitempty"`
	Model   string `json:"model,omitempty"`
	Session string `json:"session,omitempty"` // the agent's own session, for resuming
	Round   int    `json:"round,omitempty"`   // of a review
	Plan    string `json:"plan,omitempty"`    // hash of the plan it works on
	// Prompt is the SHA-256 of the prompt as its transcript begins with it; empty for checks.
	Prompt string `json:"prompt_digest,omitempty"`
	// MaxTurns is how many answers of the model the gateway admits; 0 leaves it to the agent.
	MaxTurns int `json:"max_turns,omitempty"`
	// TurnLimit is the number of turns in the agent's prompt.
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

// RunActivity is the activity in the run's log.
type RunActivity struct {
	LastSeq      int64     `json:"last_seq"` // last stored line of its log
	LastActivity time.Time `json:"sign,omitzero"`
	// Uncertain is set if it is not known whether the run began at Started, because the answer to its launch was lost.
	Uncertain bool   `json:"uncertain,omitempty"`
	Doing     string `json:"doing,omitempty"` // the latest action, one line
	Turns     int    `json:"turns,omitempty"`
	Refused   int    `json:"refused,omitempty"` // calls that the rules of its agent's program refused
	// Calls are the ids of the calls of errand's tools, while the run lasts.
	Calls []string `json:"calls,omitempty"`
	Reads int      `json:"reads,omitempty"` // the number of calls of the tool context
	// Steering is set while messages wait to interrupt the run.
	Steering *Steering `json:"steering,omitempty"`
	// LastMessage is the agent's last message, for the prompt of a run that continues in a new session.
	LastMessage string `json:"said,omitempty"`
}

// RunUsage is a run's use of the model, and the gateway's denials.
type RunUsage struct {
	Money Money `json:"money"`
	// Metered reports that the gateway counted Money; otherwise the agent reported it.
	Metered bool `json:"metered,omitempty"`
	// Answers counts the answers of the model that the gateway accounted for.
	Answers int `json:"answers,omitempty"`
	// Used is the usage that the agent reported, for comparison with Money; nil if it reported none.
	Used *Usage `json:"used,omitempty"`
	// RunDenial is the reason why the gateway denied the run the model although the task has money left.
	RunDenial *Waiting `json:"held,omitempty"`
	// CallDenial is the reason why the gateway denied the run's last model call, if it concerned only this call; empty
	// if the model has answered since.
	CallDenial string `json:"denied,omitempty"`
	// Unfinished is set if the model's last answer has no end, and the run's program does not report that.
	Unfinished *Waiting `json:"unfinished,omitempty"`
}

// RunVerdict is how a run ended.
type RunVerdict struct {
	// Reported reports that the run's result has arrived.
	Reported bool      `json:"told,omitempty"`
	Status   RunStatus `json:"status,omitempty"`
	Class    RunClass  `json:"class,omitempty"`
	Message  string    `json:"message,omitempty"` // one sentence
	// CheckSummary is the result of a run of the repository's commands; nil for others, and if they could not be run.
	CheckSummary *CheckSummary `json:"checked,omitempty"`
	// Conclusion is the conclusion that the agent reported through a tool.
	Conclusion *Conclusion `json:"concluded,omitempty"`
}

// Usage counts tokens as agents do. Input excludes tokens that were read from or written to a cache.
type Usage struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cache_read,omitempty"`
	CacheWrite int64 `json:"cache_write,omitempty"`
}

// RunResult is a supervisor's report of the end of a run, interpreted by the agent's adapter.
type RunResult struct {
	Status RunStatus `json:"status"`
	Class  RunClass  `json:"class"`
	// VMEndReason is the value of VM.EndReason for a lost VM (StatusVMLost); empty if the reason is unknown.
	VMEndReason VMEndReason `json:"vm_end,omitempty"`
	Message     string      `json:"message,omitempty"` // one sentence for people, in errand's words
	// ProgramError is the error message of the agent's program, RunnerNote a remark of the runner on the VM. They go to the
	// log and the transcript only, and are not stored with the task.
	ProgramError string    `json:"program_error,omitempty"`
	RunnerNote   string    `json:"runner_note,omitempty"`
	Session      string    `json:"session,omitempty"`
	Turns        int       `json:"turns,omitempty"`
	Refused      int       `json:"refused,omitempty"` // calls that the rules of the agent's program refused
	Money        Money     `json:"money"`
	Used         *Usage    `json:"used,omitempty"` // the basis of Money, if the agent reported it
	LastSeq      int64     `json:"last_seq"`
	Ended        time.Time `json:"ended"`
	RetryAt      time.Time `json:"retry_at,omitzero"` // when a limit ends, if known
	Text         string    `json:"text,omitempty"`    // the agent's last message, Markdown, redacted
	Outcome      Outcome   `json:"outcome,omitempty"`
	// Broken is the reason why the closing block cannot be parsed, empty if it can. Outcome is then derived from its
	// readable parts, or with Guess the most likely one. Block is the block as it was written, possibly shortened.
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

// CheckResult is the result of one of the repository's own commands, or of a gate on changed code.
type CheckResult struct {
	Name     string        `json:"name"`
	Command  string        `json:"command"`
	Code     int           `json:"code"`
	TimedOut bool          `json:"timed_out,omitempty"`
	Skipped  string        `json:"skipped,omitempty"` // why it was not run; Code is 0 then
	Duration time.Duration `json:"duration"`
	Tail     string        `json:"tail,omitempty"`
	// Gate marks the result of a gate. Its name has the figure, its code is 0 or 1, and its tail says why it failed.
	Gate bool `json:"gate,omitempty"`
}

// The kinds of sandboxes, which are the VMs of the provider `local`.
const (
	SandboxBwrap  = "bwrap"
	SandboxUserns = "userns"
	SandboxPlain  = "plain" // without isolation from its host, whose network it has
)

// VM is the machine of a task, as the task knows it.
type VM struct {
	Name      string    `json:"name"`
	Provider  string    `json:"provider"`
	Kind      string    `json:"kind"` // SandboxBwrap and so on; the server type of a cloud
	Gen       int       `json:"gen"`  // grows with each VM of the task
	CreatedAt time.Time `json:"created_at,omitzero"`
	// Paid is the billed unit, counted from CreatedAt, such as an hour; zero for VMs that are free. MicroHour is its
	// price in millionths of Currency.
	Paid      time.Duration `json:"paid,omitempty"`
	MicroHour int64         `json:"micro_hour,omitempty"`
	Currency  string        `json:"currency,omitempty"`
	// SuspendDuration is the 95th percentile of the recent durations of suspending such a VM; zero if they are short or
	// unknown.
	SuspendDuration time.Duration `json:"put_away,omitempty"`
	// RestoredFrom lists the names of the task's VMs whose work was restored on this one.
	RestoredFrom []string `json:"carries,omitempty"`
	// WantedAt is when another task that waits for a VM last caused this one to be suspended; zero if none did.
	WantedAt  time.Time   `json:"wanted_at,omitzero"`
	EndedAt   time.Time   `json:"ended_at,omitzero"`
	EndReason VMEndReason `json:"why,omitempty"`
}

// Branch is the task's branch.
type Branch struct {
	Name    string `json:"name,omitempty"`
	Base    string `json:"base,omitempty"`     // the branch that it will be merged into
	BaseSHA string `json:"base_sha,omitempty"` // the commit at which it started
	// BaseAt is the time when the job start read BaseSHA as the base's newest commit; zero once a run has started.
	BaseAt time.Time `json:"base_at,omitzero"`
	Head   string    `json:"head,omitempty"` // as published, empty before
	Tree   string    `json:"tree,omitempty"`
	// Root is the published commit on which unpublished work on the VM is based. Head is newer if somebody has pushed
	// since; then the work is rebased first.
	Root string `json:"root,omitempty"`
	// Updated is the head that GitHub created for errand from the branch and the newest commits of the base.
	Updated string `json:"updated,omitempty"`
	// BaseMoved is set if the base may have commits that were not compared with the branch.
	BaseMoved bool `json:"base_moved,omitempty"`
	// VMHead is the published commit to which the VM's checkout was last set, or on which its unpublished work is based.
	VMHead string `json:"vm_head,omitempty"`
}

// Work is the state of a changeset that is being published. The changeset itself is in the file Ref.
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
	// Digest is that of the changeset, and Published are its commits on GitHub, oldest first; set by the job commit.
	Digest    string            `json:"digest,omitempty"`
	Published []PublishedCommit `json:"published,omitempty"`
	Rebases   int               `json:"rebases,omitempty"`
	Notes     []string          `json:"notes,omitempty"`
	// Approved is the hash of the approved PlanPublish.
	Approved string `json:"approved,omitempty"`
	// The agent's description of it, kept until it is posted.
	Answers []ThreadAnswer `json:"answers,omitempty"`
	// Review is the GraphQL ID of the pending review that has the answers in threads.
	Review  string        `json:"review,omitempty"`
	Summary string        `json:"summary,omitempty"`
	Title   string        `json:"title,omitempty"`
	Text    string        `json:"text,omitempty"`
	Checks  []CheckResult `json:"checks,omitempty"` // of this tree
}

// SavedWork is the stored work of a run that was interrupted.
type SavedWork struct {
	Run    string    `json:"run"`
	Ref    string    `json:"ref"`
	At     time.Time `json:"at"`
	Reason string    `json:"why"`
}

// SetRunSeq gives a number, and the ID with it, to the task's run that is about to be started.
func (t *Task) SetRunSeq(seq int) {
	t.RunSeq, t.Run.Seq, t.Run.ID = seq, seq, fmt.Sprintf("%d-%d-%d", t.Key.Repo, t.Key.Issue, seq)
}

// StatusComment is the status comment, which is edited in place.
type StatusComment struct {
	Comment int64     `json:"comment,omitempty"`
	Node    string    `json:"node,omitempty"`
	URL     string    `json:"url,omitempty"`
	Shown   int64     `json:"shown"` // Task.Visible that it shows
	At      time.Time `json:"at,omitzero"`
	Failed  int       `json:"failed,omitempty"` // failed writes in a row since the end of the task
}

// Posted is a comment by errand.
type Posted struct {
	Key  string    `json:"key"` // the job's idempotency key, also in the comment's marker
	Kind string    `json:"kind"`
	ID   int64     `json:"id"`
	Node string    `json:"node,omitempty"`
	URL  string    `json:"url"`
	At   time.Time `json:"at"`
	OnPR bool      `json:"on_pr,omitempty"`
	// Number is the number of the pull request with the comment.
	Number int `json:"number,omitempty"`
}

// Launch is the result of the job launch.
type Launch struct {
	Run     string `json:"run"`
	VM      VM     `json:"vm"`
	Adapter string `json:"adapter"`
	Model   string `json:"model,omitempty"`
	// Prompt is the SHA-256 of the prompt.
	Prompt string `json:"prompt_digest,omitempty"`
	// MaxTurns is how many answers of the model the gateway gives the run; 0 leaves it to the agent.
	MaxTurns int `json:"max_turns,omitempty"`
	// TurnLimit is the number of turns in the agent's prompt.
	TurnLimit int `json:"turn_limit,omitempty"`
	// IsRepair reports that the agent was asked only for its closing block.
	IsRepair bool      `json:"repairs,omitempty"`
	VMHead   string    `json:"vm_head,omitempty"`
	BaseSHA  string    `json:"base_sha,omitempty"` // the base's newest commit, where a new branch begins
	Root     string    `json:"root,omitempty"`     // the commit to which the checkout was set; empty if it keeps unpublished work
	Started  time.Time `json:"started"`
	Resumed  bool      `json:"resumed,omitempty"` // the agent continues its session
	// Notes list the contents of the prompt besides the plan, for the status comment.
	Notes []string `json:"notes,omitempty"`
	// RestoreFailure is the reason why the saved work could not be restored on the VM; empty if it was restored, or if
	// there was none.
	RestoreFailure string `json:"not_woken,omitempty"`
	// Saved is the work that was on the VM when the launch began, of runs that the store does not know.
	Saved *SavedWork `json:"saved,omitempty"`
	// FeedbackIDs are the IDs of the feedback in the prompt.
	FeedbackIDs []string `json:"taken,omitempty"`
	// Attachments are those that the launch read, or could not read, in addition to those of the task.
	Attachments []Attachment `json:"attachments,omitempty"`
	// FrozenFiles are the digests of the files attached to the frozen text whose Hash is FrozenHash.
	FrozenFiles []string `json:"frozen_files,omitempty"`
	FrozenHash  string   `json:"frozen_hash,omitempty"`
}

// AgentTime returns the time that agents worked on the task so far. That of the active run is not included.
func (t *Task) AgentTime() time.Duration {
	var sum time.Duration
	for i := range t.Runs {
		if r := &t.Runs[i]; !r.Started.IsZero() && r.Ended.After(r.Started) {
			sum += r.Ended.Sub(r.Started)
		}
	}
	return sum
}
