// Package runlog holds what a run reports while it goes on: the raw lines as they cross the wire
// from a VM, the run's exit, and the normalised events that an adapter makes of the lines.
//
// A Line is exactly what the runner wrote to its event log, with a sequence number that grows by
// one, so that a reader who was cut off can go on from the last number it stored. An Event is what
// people and the board see. Everything here was reported from a VM and is untrusted.
package runlog

import "time"

// Stream says where a line came from.
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
	// Cut is the number of bytes that were left out of Text because the line was too long. In a remark of the runner, it
	// is how many bytes of standard output were left out in its place.
	Cut int `json:"cut,omitempty"`
}

// Cause says why a run's process is no longer there, as the runner saw it.
type Cause string

// The causes that a runner can tell apart. What the agent itself reports is judged by its adapter.
const (
	CauseExited      Cause = "exited"       // the process ended by itself
	CauseStopped     Cause = "stopped"      // somebody asked for it
	CauseDuration    Cause = "duration"     // the run's time was up
	CauseStalled     Cause = "stalled"      // no output, no open request, no CPU use for too long
	CauseSetupFailed Cause = "setup_failed" // a set-up command failed before the agent started
	CauseStartFailed Cause = "start_failed" // the agent's command could not be started
	CauseLost        Cause = "lost"         // the VM or the runner died and left no exit
)

// Exit is how a run ended. It is written once, after every process of the run is gone.
type Exit struct {
	Cause     Cause     `json:"cause"`
	Code      int       `json:"code"`
	Signal    string    `json:"signal,omitempty"`
	StartedAt time.Time `json:"started_at"`
	EndedAt   time.Time `json:"ended_at"`
	LastSeq   int64     `json:"last_seq"`
	// Message is one sentence for people, empty when Cause says enough.
	Message string `json:"message,omitempty"`
	// DiskFull says that there was no room left on the disk at the end, whatever the cause.
	DiskFull bool `json:"disk_full,omitempty"`
}

// Kind is what a normalised event is about.
type Kind string

// The kinds of events that adapters make of lines.
const (
	KindStarted    Kind = "started"     // Session and Model are set
	KindText       Kind = "text"        // the agent said something
	KindThinking   Kind = "thinking"    // the agent thought aloud
	KindToolUse    Kind = "tool_use"    // ToolName, ToolID, Input
	KindToolResult Kind = "tool_result" // ToolID, Text, IsError
	KindUsage      Kind = "usage"       // Usage
	KindRetry      Kind = "retry"       // the agent's client waits and asks again; Delay
	KindNotice     Kind = "notice"      // a remark of the CLI or of the runner
	KindResult     Kind = "result"      // the agent's last word
)

// Event is one normalised event of a run.
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

// Usage counts tokens. Input excludes what was read from or written to a cache.
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
