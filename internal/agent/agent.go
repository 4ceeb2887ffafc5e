// Package agent drives coding-agent command lines. An Adapter turns what a run shall do into a
// command line, environment, input and files, and turns what the command prints into the run
// events of package runlog and one judgement of how it ended.
//
// An adapter starts no process and opens no file: whoever has the VM does that, so that the same
// adapter serves a run over SSH, a test and a log that is read again later. What a command prints
// is untrusted: a parser never fails, never panics, and believes no success that it can disprove.
//
// The model gateway's own count of tokens is the ledger; usage reported here is a cross-check.
//
// Start reading at Adapter; Judge rules are at claudeParser.Exit; what an agent's final answer may
// carry for the orchestrator is at ParseOutcome. The conformance suite is in agenttest.
package agent

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"time"

	"github.com/errand-bot/errand/internal/runlog"
)

// Adapter knows one agent's command line. It has no state and may be shared.
type Adapter interface {
	// Name is the adapter's name in the configuration.
	Name() string
	// Capabilities says what the agent can do.
	Capabilities() Capabilities
	// Command says how to start a run. It refuses what the agent would misread or fail open on.
	Command(Spec) (Cmd, error)
	// NewParser returns a parser for the output of one run.
	NewParser() Parser
	// SessionFiles lists, relative to home and with forward slashes, the files and directories that
	// carry a session to another VM. workDir must be a real path, without symbolic links.
	SessionFiles(home, workDir, session string) []string
}

// Capabilities are what agents differ in.
type Capabilities struct {
	// Resume: a session can be continued by its id.
	Resume bool
	// Fork: a session can be continued under a new id, the old one staying as it was.
	Fork bool
	// Schema: the final answer can be held to a JSON schema.
	Schema bool
	// Usage: the agent reports the tokens that it has used. Cost: it also reckons what they cost.
	Usage, Cost bool
	// OwnSessionID: the agent gives a new session an id itself; Spec.Session is not used.
	OwnSessionID bool
	// NoTurnLimit: the agent cannot be held to MaxTurns; whoever counts its model calls has to end it.
	NoTurnLimit bool
	// MCP: the servers of Spec.MCP are started, and their tools offered.
	MCP bool
	// Shell: the program itself refuses commands that Spec.Shell does not name. Without it the list is only told
	// to the model.
	Shell bool
	// API is the dialect that the agent speaks to a model: anthropic, openai or gemini. Empty means
	// that it is for the configuration to say.
	API string
	// Helpers are small models that the program asks whatever model it is given, and cannot be kept from:
	// the gateway lets them pass as well.
	Helpers []string
}

// Spec is what a run shall do.
type Spec struct {
	// WorkDir is the checkout; Home the agent's home directory; RunDir a directory of this run
	// alone, outside the checkout, for the files that Command asks for. All absolute, on the VM.
	WorkDir, Home, RunDir string
	// Step is the orchestrator's name for what is being done. It chooses the model if Model is empty.
	Step  string
	Model string
	// Prompt is the task; System is added to the agent's own system prompt.
	Prompt, System string
	// Resume is the id of a session to continue; Session the id to give to a new one (a UUID). With
	// Fork the session to continue stays as it is, and a copy of it goes on under an id of its own.
	Resume, Session string
	Fork            bool
	// Tools limits the agent to these tools, in the agent's own names; empty means those for coding.
	Tools []string
	// Deny lists calls that the agent's own rules shall refuse. They are a courtesy, no boundary.
	Deny []string
	// Shell lists how the commands begin that the agent may call in a shell, such as "git" or "npm run"; Deny goes
	// before it. Nil is any command. It is a courtesy likewise.
	Shell []string
	// MCP is a server configuration ({"mcpServers": …}); Schema a JSON schema for the final answer.
	MCP, Schema json.RawMessage
	// MaxTurns bounds the model calls; 0 takes DefaultMaxTurns.
	MaxTurns int
	// MaxUSD bounds what the agent believes to cost; 0 is no bound.
	MaxUSD float64
	// BaseURL is where the model is reached from the VM, RunToken what to show there.
	BaseURL, RunToken string
}

// Cmd is how to start a run. Its stdout has to be a file, as the runner makes it: an agent may drop what a full pipe has
// not taken when it exits, its last line first of all, and then the run counts as crashed.
type Cmd struct {
	// Argv is the command with its arguments; Argv[0] is looked up in PATH unless it has a slash.
	Argv []string
	// Env is added to the environment, in preference to what is there.
	Env map[string]string
	// Stdin is given to the command, which then sees the end of its input.
	Stdin []byte
	// Files must exist before the start.
	Files []File
}

// File is a file that a run needs.
type File struct {
	Path    string // absolute
	Mode    fs.FileMode
	Content []byte
}

// Parser reads the output of one run, from one goroutine.
type Parser interface {
	// Line takes one line of stdout, without its end, and returns what it tells. Lines of unknown
	// kinds and lines that are no JSON tell nothing. Seq and Time of the events are the caller's to
	// set. Texts that are long are cut at 16 KiB, the agent's own words at 256 KiB.
	Line(line []byte) []runlog.Event
	// Cut takes the beginning of a line that was too long, in the place of Line. So many bytes are missing at its end. An
	// answer that came in such a line is not whole: it is never taken for the result, and the judgement says why. Without a
	// beginning, the line stands for any number of lines.
	Cut(line []byte, missing int) []runlog.Event
	// Exit judges the run. It is called once, after the last line, when every process is gone.
	Exit(Ended) Result
}

// StderrParser is a Parser that counts something by what its program writes to standard error.
type StderrParser interface {
	// StderrLine takes one line of stderr, without its end. Lines may be left out, or told in any order with those
	// of stdout.
	StderrLine(line string)
}

// Ended is what is known about a run's end besides its stdout.
type Ended struct {
	Exit runlog.Exit
	// StopRequested: we asked for the stop, whatever the exit says.
	StopRequested bool
	// Stderr is the end of what the command wrote there.
	Stderr string
	// WantSession is the session that was to be resumed, empty if none.
	WantSession string
	// WantSchema: a structured answer was asked for.
	WantSchema bool
	// Prior is what the session had used before this run, nil if unknown: some agents report the use of the
	// whole session.
	Prior *runlog.Usage
}

// Result is how a run ended.
type Result struct {
	Status Status
	// Text is the agent's final answer, or what it said about its failure.
	Text string
	// Structured is the answer to Spec.Schema; it is valid JSON, not validated against the schema.
	Structured json.RawMessage
	// Session is the id to resume; it may be set for failed runs too.
	Session string
	Turns   int
	Usage   runlog.Usage
	CostUSD float64
	// Denials names the tool calls that the agent's own rules refused.
	Denials []string
	// HTTP is the status of the model's failure, 0 if there was none.
	HTTP int
	// ResetAt is when a limit ends, zero if unknown.
	ResetAt time.Time
	// Why is why Status is not ok, in errand's own words, for people. It is empty where the status says it all.
	Why string
	// Said is what the program said of its failure. It is for the log and the transcript, never for people: it names
	// commands, addresses and request ids that are not theirs to act on, and the agent may have written it.
	Said string
}

// verdict is how a run ended, as a Result has it.
type verdict struct {
	status    Status
	why, said string
}

// maxSaid bounds what is kept of a program's words, in bytes.
const maxSaid = 2000

// judge puts a verdict into the result.
func (r *Result) judge(v verdict) {
	r.Status, r.Why, r.Said = v.status, v.why, cutText(v.said, maxSaid)
}

// New returns the adapter that the configuration names.
func New(cfg Config) (Adapter, error) {
	cfg = cfg.withDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if make, ok := adapters()[cfg.Adapter]; ok {
		return make(cfg), nil
	}
	return nil, fmt.Errorf("agent.adapter: %q is unknown", cfg.Adapter)
}

// adapters makes adapters by name.
func adapters() map[string]func(Config) Adapter {
	return map[string]func(Config) Adapter{
		NameClaude:  func(c Config) Adapter { return &claude{cfg: c} },
		NameCodex:   func(c Config) Adapter { return &codex{cfg: c} },
		NameGemini:  func(c Config) Adapter { return &gemini{cfg: c} },
		NameCommand: func(c Config) Adapter { return &command{cfg: c} },
		NameAPI:     func(c Config) Adapter { return &api{cfg: c} },
	}
}
