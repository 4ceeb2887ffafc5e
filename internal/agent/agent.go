// Package agent defines how errand calls coding agents. An [Adapter] translates a run's [Spec] into a command line,
// environment, input and files, and translates the command's output into the events of package runlog and a final
// [Result]. Each agent program has its adapter in a package of its own; package registry finds an adapter by its name.
//
// An adapter starts no process and opens no file; the caller does that on the VM. The same adapter therefore serves a
// run over SSH, a test, and a log that is read again later. The output of a command is untrusted: a parser never fails
// or panics, and accepts a reported success only if no other evidence contradicts it.
//
// The model gateway's token count is authoritative; the usage reported here is a cross-check.
//
// Start with [Adapter], and then package claude as an example of one. [ParseOutcome] reads the data that a final answer
// carries for the orchestrator. The conformance suite of adapters is in package agenttest.
package agent

import (
	"encoding/json"
	"io/fs"
	"time"

	"github.com/errand-bot/errand/internal/runlog"
)

// Adapter drives one agent's command line. It has no state and may be shared.
type Adapter interface {
	// Name is the adapter's name in the configuration.
	Name() string
	// Capabilities returns the features that the agent supports.
	Capabilities() Capabilities
	// Command returns the command that starts a run. It refuses a Spec that the agent would misinterpret or ignore in
	// an unsafe way.
	Command(Spec) (Cmd, error)
	// NewParser returns a parser for the output of one run.
	NewParser() Parser
	// SessionFiles returns the files and directories that carry a session to another VM, relative to the agent's home
	// directory and with forward slashes. workDir must be a real path, without symbolic links.
	SessionFiles(workDir, session string) []string
}

// Capabilities are the features that not every agent supports.
type Capabilities struct {
	// Resume: a session can be continued by its id.
	Resume bool
	// Schema: the final answer can be constrained to a JSON schema.
	Schema bool
	// NoTurnLimit: the agent does not enforce MaxTurns, so the counter of its model calls must end the run.
	NoTurnLimit bool
	// MCP: the servers of Spec.MCP are started, and their tools offered.
	MCP bool
	// API is the dialect in which the agent calls a model: anthropic, openai or gemini. Empty means that the
	// configuration decides.
	API string
	// Helpers are small models that the program calls regardless of the configured model and that cannot be turned off,
	// so the gateway allows them, too.
	Helpers []string
}

// Spec describes a run.
type Spec struct {
	// WorkDir is the checkout, Home the agent's home directory, and RunDir a directory of this run only, outside the
	// checkout, for the files that Command returns. All are absolute paths on the VM.
	WorkDir, Home, RunDir string
	// Attachments is the directory of the files that the prompt lists, outside the checkout; empty if there are none. The
	// agent can read them, and look at the images with its own tools.
	Attachments string
	// Step is the orchestrator's name of the run's purpose.
	Step string
	// Model is the model to call. It may be empty for a program that chooses one itself.
	Model string
	// Prompt is the task; System is added to the agent's own system prompt.
	Prompt, System string
	// Resume is the id of a session to continue, Session the id of a new one (a UUID). An agent that chooses the ids of
	// its sessions itself ignores Session.
	Resume, Session string
	// Deny lists calls for the agent's own rules to refuse. They prevent mistakes and are not a security boundary.
	Deny []string
	// Shell lists the beginnings of the commands that the agent may run in a shell, such as "git" or "npm run"; Deny
	// takes precedence. Nil allows any command. Like Deny, it is not a security boundary.
	Shell []string
	// MCP is a server configuration ({"mcpServers": …}); Schema a JSON schema for the final answer.
	MCP, Schema json.RawMessage
	// MaxTurns bounds the model calls; 0 means no limit.
	MaxTurns int
	// MaxUSD bounds the cost as the agent estimates it; 0 means no bound.
	MaxUSD float64
	// BaseURL is the model endpoint as seen from the VM, RunToken the credential for it.
	BaseURL, RunToken string
}

// Cmd is the command that starts a run. Its stdout must be a file, as the runner makes it: at exit an agent may drop
// output that a full pipe has not taken, including its last line, and the run would then count as crashed.
type Cmd struct {
	// Argv is the command with its arguments; Argv[0] is looked up in PATH unless it has a slash.
	Argv []string
	// Env is added to the environment and takes precedence over it.
	Env map[string]string
	// Stdin is the command's complete input.
	Stdin []byte
	// Files must exist before the command starts.
	Files []File
}

// File is a file that a run needs.
type File struct {
	Path    string // absolute
	Mode    fs.FileMode
	Content []byte
}

// Parser reads the output of one run. It must be used from one goroutine.
type Parser interface {
	// Line takes one line of stdout, without its end, and returns its events. Lines of unknown kinds and lines that are
	// not JSON have none. The caller sets Seq and Time of the events. Long texts are truncated to 16 KiB, the agent's
	// own words to 256 KiB.
	Line(line []byte) []runlog.Event
	// Cut takes the beginning of an overlong line in place of Line; missing is the number of bytes that were dropped
	// from its end. An answer in such a line is incomplete: it is never used as the result, and the judgment gives the
	// reason. An empty beginning stands for any number of lines.
	Cut(line []byte, missing int) []runlog.Event
	// Exit judges the run. It is called once, after the last line, when all processes have ended.
	Exit(Ended) Result
}

// StderrParser is a [Parser] that also reads its program's standard error.
type StderrParser interface {
	// StderrLine takes one line of stderr, without its end. Lines may be left out, and their order relative to those of
	// stdout is undefined.
	StderrLine(line string)
}

// Ended is the evidence about a run's end besides its stdout.
type Ended struct {
	Exit runlog.Exit
	// StopRequested: errand requested the stop, whatever the exit status is.
	StopRequested bool
	// Stderr is the end of the command's standard error.
	Stderr string
	// WantSession is the session that the run was to resume, empty if none.
	WantSession string
	// WantSchema: a structured answer was requested.
	WantSchema bool
	// Prior is the session's usage before this run, nil if unknown. Some agents report the usage of the whole session.
	Prior *runlog.Usage
}

// Clean reports whether the program exited on its own and reports success.
func (e Ended) Clean() bool { return e.Exit.Code == 0 && e.Exit.Signal == "" }

// Result is the outcome of a run.
type Result struct {
	Status Status
	// Text is the agent's final answer, or its description of the failure.
	Text string
	// Structured is the answer to Spec.Schema; it is valid JSON, not validated against the schema.
	Structured json.RawMessage
	// Session is the id for resuming; it may be set for failed runs, too.
	Session string
	Turns   int
	Usage   runlog.Usage
	CostUSD float64
	// Denials lists the tool calls that the agent's own rules refused.
	Denials []string
	// HTTP is the status code of a failed model call, 0 if none failed.
	HTTP int
	// ResetAt is the end of a rate limit, zero if unknown.
	ResetAt time.Time
	// Reason explains a Status other than ok, in errand's words, for people. It is empty if the status needs no
	// explanation.
	Reason string
	// Said is the program's own description of its failure. It is for the log and the transcript, never for people: it
	// may contain commands, addresses and request ids that they cannot use, and the agent may have written it.
	Said string
}

// Program is the configured program of an adapter.
type Program struct {
	// Command starts the program, with leading arguments.
	Command []string
	// Env is set for the program and all processes that it starts.
	Env map[string]string
}

// Route is the adapter and the model of a step. In the configuration and in comments it is written as "model" or
// "adapter:model"; a colon after anything but an adapter's name belongs to the model.
type Route struct {
	// Adapter is never empty; Model is empty if the configuration leaves it to the program.
	Adapter, Model string
}

// String returns the route as "adapter:model".
func (r Route) String() string { return r.Adapter + ":" + r.Model }
