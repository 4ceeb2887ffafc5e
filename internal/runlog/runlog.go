// Package runlog defines the reports of a run: the raw lines on the wire from a VM, the run's exit, the normalized
// events that an adapter derives from the lines, and the transcript.
//
// A [Line] is exactly what the runner wrote to its log, with a sequence number that grows by one, so that a reader can
// resume from the last number it stored. An [Event] is shown to people. All of this comes from a VM and is untrusted.
//
// Start here: [Line], [Event] and [Reader]; [ReadTranscript] for stored runs.
package runlog

import "time"

// Stream is the origin of a line.
type Stream string

// The streams of a run.
const (
	StreamStdout Stream = "stdout"
	StreamStderr Stream = "stderr"
	// StreamRunner carries remarks of the runner itself: set-up commands, stops, stalls.
	StreamRunner Stream = "runner"
)

// Line is one line of a run's log. Seq starts at 1 and grows by one.
type Line struct {
	Seq    int64     `json:"seq"`
	Time   time.Time `json:"time"`
	Stream Stream    `json:"stream"`
	Text   string    `json:"text"`
	// Cut is the number of bytes that were dropped from the end of Text because the line was too long. In a remark of
	// the runner, it is the number of bytes of standard output that were dropped in its place.
	Cut int `json:"cut,omitempty"`
}

// Cause is the reason for the end of a run's process, as the runner observed it.
type Cause string

// The causes that a runner can distinguish. The agent's own report is judged by its adapter.
const (
	CauseExited      Cause = "exited"       // the process exited on its own
	CauseStopped     Cause = "stopped"      // a stop was requested
	CauseDuration    Cause = "duration"     // the run exceeded its time limit
	CauseStalled     Cause = "stalled"      // no output, no open request, no CPU use for too long
	CauseSetupFailed Cause = "setup_failed" // a set-up command failed before the agent started
	CauseStartFailed Cause = "start_failed" // the agent's command could not be started
	CauseLost        Cause = "lost"         // the VM or the runner died and left no exit
)

// Exit is the end of a run. It is written once, after all processes of the run have ended.
type Exit struct {
	Cause     Cause     `json:"cause"`
	Code      int       `json:"code"`
	Signal    string    `json:"signal,omitempty"`
	StartedAt time.Time `json:"started_at"`
	EndedAt   time.Time `json:"ended_at"`
	LastSeq   int64     `json:"last_seq"`
	// Message is one sentence for people, empty if Cause is sufficient.
	Message string `json:"message,omitempty"`
	// DiskFull reports that the disk was full at the end, whatever the cause.
	DiskFull bool `json:"disk_full,omitempty"`
}

// Kind is the kind of a normalized event.
type Kind string

// The kinds of events that adapters derive from lines.
const (
	KindStarted    Kind = "started"     // Session and Model are set
	KindText       Kind = "text"        // text of the agent
	KindThinking   Kind = "thinking"    // reasoning of the agent
	KindToolUse    Kind = "tool_use"    // ToolName, ToolID, Input
	KindToolResult Kind = "tool_result" // ToolID, Text, IsError
	KindUsage      Kind = "usage"       // Usage
	KindRetry      Kind = "retry"       // the agent's client waits before a retry; Delay
	KindNotice     Kind = "notice"      // a remark of the CLI or of the runner
	KindResult     Kind = "result"      // the agent's final answer
)

// Event is one normalized event of a run.
type Event struct {
	Seq      int64         `json:"seq"`
	Time     time.Time     `json:"time"`
	Kind     Kind          `json:"kind"`
	Text     string        `json:"text,omitempty"`
	Session  string        `json:"session,omitempty"`
	Model    string        `json:"model,omitempty"`
	ToolID   string        `json:"tool_id,omitempty"`
	ToolName string        `json:"tool_name,omitempty"`
	Input    string        `json:"input,omitempty"`
	IsError  bool          `json:"is_error,omitempty"`
	Usage    *Usage        `json:"usage,omitempty"`
	Delay    time.Duration `json:"delay,omitempty"`
}

// Usage counts tokens. Input excludes tokens read from or written to a cache.
type Usage struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cache_read"`
	CacheWrite int64 `json:"cache_write"`
}

// Add returns the sum of two usages.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		Input:      u.Input + v.Input,
		Output:     u.Output + v.Output,
		CacheRead:  u.CacheRead + v.CacheRead,
		CacheWrite: u.CacheWrite + v.CacheWrite,
	}
}
