// Package agenttest is the conformance suite of agent adapters. It runs each adapter's real command as a process
// against a scripted model.
//
// A [Harness] specifies how the adapter's command is run and how a model is started. The simulated agent passes the
// suite in every test run; a real command line can be tested in its place.
//
// Start here: [Run]. Tests of a single adapter may also use [Start].
package agenttest

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/runlog"
)

// Harness describes an adapter and its environment to the suite.
type Harness struct {
	Adapter agent.Adapter
	// Model starts a model that plays the scenario and ends with the test.
	Model func(t *testing.T, s Scenario) Model
	// Words: the agent reports failures as text only, without the API's status.
	Words bool
	// Pieces: the agent prints the model's text in chunks, so that none of its lines is long.
	Pieces bool
	// NoExitCodes: the agent reports a failed command like a successful one.
	NoExitCodes bool
	// NoEditor: the agent changes files through commands only.
	NoEditor bool
	// Cost: the agent estimates the cost of a run.
	Cost bool
	// OwnSessionID: the agent chooses the id of a new session.
	OwnSessionID bool
	// Env is the environment of the processes, in addition to the adapter's own and PATH.
	Env []string
}

// Scenario is the script of the model: its replies, by prompt.
type Scenario []Reply

// Reply is the model's reaction to one prompt. The first reply whose Prompt occurs in the newest prompt of the
// conversation is used.
type Reply struct {
	Prompt string
	Turns  []Turn
	// Repeat starts again after the last turn.
	Repeat bool
}

// Turn is one answer of the model.
type Turn struct {
	Thinking, Text string
	// Bash lists commands to run; Calls lists other tool calls.
	Bash  []string
	Calls []Call
	// Wait is the name of a gate at which the answer waits.
	Wait string
	// Status, if not 0, makes the model answer with this HTTP error and Message; Cut, if not 0, breaks the stream after
	// that many chunks. Both apply Times times; 0 means always.
	Status  int
	Message string
	Cut     int
	Times   int
	// Stop is the stop reason, if it differs from the usual one.
	Stop string
}

// Call is a tool call.
type Call struct {
	Name  string
	Input map[string]any
}

// Model is a running model.
type Model struct {
	// Name is the name by which a run calls the model.
	Name       string
	URL, Token string
	// Usage returns the total tokens of all answers.
	Usage func() runlog.Usage
	// Bodies returns the bodies of all requests received.
	Bodies func() []string
	// Waiting returns when a request waits at the gate; Release opens the gate.
	Waiting func(ctx context.Context, gate string) error
	Release func(gate string)
}

// Box holds the directories of a run, which are removed after the test.
type Box struct{ Work, Home, Run string }

// NewBox creates the directories of a run.
func NewBox(t *testing.T) Box {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := Box{Work: filepath.Join(root, "work"), Home: filepath.Join(root, "home"), Run: filepath.Join(root, "run")}
	for _, dir := range []string{b.Work, b.Home, b.Run} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// Spec returns a run of the prompt in the box against the model.
func (b Box) Spec(m Model, prompt string) agent.Spec {
	return agent.Spec{
		WorkDir: b.Work, Home: b.Home, RunDir: b.Run, Step: "implement", Model: m.Name, Prompt: prompt,
		BaseURL: m.URL, RunToken: m.Token,
	}
}

// Write creates a file in the work directory.
func (b Box) Write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(b.Work, name), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Read returns the content of a file in the work directory, or "" if it does not exist.
func (b Box) Read(name string) string {
	data, err := os.ReadFile(filepath.Join(b.Work, name))
	if err != nil {
		return ""
	}
	return string(data)
}

// deadline bounds every wait of the suite.
const deadline = 5 * time.Minute

// Run runs the suite. The subtests are parallel.
func Run(t *testing.T, h Harness) {
	t.Helper()
	can := h.Adapter.Capabilities()
	for _, tc := range []struct {
		name string
		can  bool
		test func(*testing.T, Harness)
	}{
		{"answers", true, testAnswer},
		{"runs tools", true, testTools},
		{"keeps to its turns", !can.NoTurnLimit, testMaxTurns},
		{"is stopped", true, testStop},
		{"reads a prompt as text", true, testPromptIsText},
		{"prints long lines", true, testLongLines},
		{"reports failures of the model", true, testFailures},
		{"ignores unknown lines", true, testUnknownLines},
		{"counts as the model counts", true, testUsage},
		{"resumes", can.Resume, testResume},
		{"resumes after a stop", can.Resume, testResumeAfterStop},
		{"resumes from copied files", can.Resume, testSessionFiles},
		{"reports an unknown session", can.Resume, testUnknownSession},
		{"takes a session id", can.Resume && !h.OwnSessionID, testSessionID},
		{"gives sessions ids of its own", h.OwnSessionID, testOwnSessionID},
		{"counts a resumed run alone", can.Resume, testUsageOfResumed},
		{"calls only what its shell may", true, testShell},
		{"calls anything without a list", true, testShellAnything},
		{"changes only files of its checkout", !h.NoEditor, testFiles},
		{"answers to a schema", can.Schema, testSchema},
		{"reports an answer that misses its schema", can.Schema, testSchemaMissed},
	} {
		if !tc.can {
			continue // the adapter does not support it
		}
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tc.test(t, h)
		})
	}
}

// one returns a scenario with the same reply to every prompt.
func one(turns ...Turn) Scenario { return Scenario{{Turns: turns}} }

// kinds counts the events by kind.
func kinds(events []runlog.Event) map[runlog.Kind]int {
	n := map[runlog.Kind]int{}
	for _, e := range events {
		n[e.Kind]++
	}
	return n
}

// need fails the test unless the run ended with the status.
func need(t *testing.T, r Outcome, want agent.Status) {
	t.Helper()
	if r.Result.Status != want {
		result, err := json.Marshal(r.Result)
		t.Fatalf(
			"status %q, want %q\nresult: %s (%v)\nexit: %+v\nstderr: %s",
			r.Result.Status,
			want,
			result,
			err,
			r.Ended.Exit,
			r.Ended.Stderr,
		)
	}
}
