// Package command drives any program that reads a prompt and prints an answer. It has a preset for Aider.
//
// Nothing is known about the output of such a program: all of it is the answer, and the exit status decides.
//
// Start with [New]; the type adapter lists what the program gets.
package command

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/agent/cli"
	"github.com/errand-bot/errand/internal/runlog"
)

// Name is the name of the adapter in the configuration.
const Name = "command"

// adapter runs any program as an agent: it gets the prompt on stdin, its stdout is the answer, and exit status 0 means
// success. Further information is in its environment:
//
//	ERRAND_STEP, ERRAND_MODEL, ERRAND_WORKDIR, ERRAND_MAX_TURNS
//	ERRAND_SYSTEM_FILE   a file with the rules that belong into a system prompt
//	ERRAND_MODEL_URL, ERRAND_MODEL_TOKEN   the model endpoint and the credential for it
//	ERRAND_RESUME        set if this is a continuation; errand keeps no session for it
//
// The program need not use git: the runner commits the changes that it leaves in the checkout. The command {aider} is a
// preset for Aider.
type adapter struct{ program agent.Program }

// New returns the adapter for a program.
func New(p agent.Program) agent.Adapter { return &adapter{program: p} }

func (c *adapter) Name() string { return Name }

// Capabilities reports that a limit on turns is only passed to the program, not enforced.
func (c *adapter) Capabilities() agent.Capabilities { return agent.Capabilities{NoTurnLimit: true} }

func (c *adapter) Command(s agent.Spec) (agent.Cmd, error) {
	switch {
	case strings.TrimSpace(s.Prompt) == "":
		return agent.Cmd{}, errors.New("agent command: the prompt is empty")
	case !path.IsAbs(s.WorkDir) || !path.IsAbs(s.Home) || !path.IsAbs(s.RunDir):
		return agent.Cmd{}, errors.New("agent command: a directory is not absolute")
	case len(s.Schema) > 0:
		return agent.Cmd{}, errors.New("agent command: this adapter cannot hold an answer to a schema")
	}
	env := maps.Clone(c.program.Env)
	if env == nil {
		env = map[string]string{}
	}
	rules := path.Join(s.RunDir, "rules.md")
	for name, value := range map[string]string{
		"HOME":               s.Home,
		"ERRAND_STEP":        s.Step,
		"ERRAND_MODEL":       s.Model,
		"ERRAND_WORKDIR":     s.WorkDir,
		"ERRAND_SYSTEM_FILE": rules,
		"ERRAND_MODEL_URL":   s.BaseURL,
		"ERRAND_MODEL_TOKEN": s.RunToken,
		"ERRAND_RESUME":      s.Resume,
	} {
		if value != "" {
			env[name] = value
		}
	}
	if s.MaxTurns > 0 {
		env["ERRAND_MAX_TURNS"] = strconv.Itoa(s.MaxTurns)
	}
	return agent.Cmd{
		Argv:  preset(c.program.Command),
		Env:   env,
		Stdin: []byte(s.Prompt),
		Files: []agent.File{{Path: rules, Mode: 0o600, Content: []byte(s.System)}},
	}, nil
}

func (c *adapter) NewParser() agent.Parser { return &parser{} }

// SessionFiles returns nil: errand knows no sessions of such a program.
func (c *adapter) SessionFiles(string, string) []string { return nil }

// parser keeps the end of a program's output.
type parser struct {
	lines   []string
	size    int
	dropped int  // bytes that were dropped before
	cut     bool // the end of the newest non-empty line is missing
}

var _ agent.Parser = (*parser)(nil)

// Line treats every line as the agent's text.
func (p *parser) Line(line []byte) []runlog.Event {
	text := strings.ToValidUTF8(string(line), "\uFFFD")
	p.lines = append(p.lines, text)
	p.size += len(text) + 1
	for p.size > cli.MaxAnswer && len(p.lines) > 1 {
		gone := len(p.lines[0]) + 1
		p.size, p.dropped, p.lines = p.size-gone, p.dropped+gone, p.lines[1:]
	}
	if strings.TrimSpace(text) != "" {
		p.cut = false
	}
	return []runlog.Event{{Kind: runlog.KindText, Text: cli.OwnText(text)}}
}

// Cut notes in the text how many bytes of a line are missing. An answer whose last line is incomplete does not count.
func (p *parser) Cut(line []byte, missing int) []runlog.Event {
	events := p.Line(fmt.Appendf(slices.Clone(line), "… (%d bytes of this line are missing)", missing))
	p.cut = true
	return events
}

func (p *parser) Exit(e agent.Ended) agent.Result {
	r := agent.Result{Status: agent.StatusOK, Text: strings.TrimSpace(strings.Join(p.lines, "\n")), Turns: 1}
	if p.dropped > 0 {
		r.Text = fmt.Sprintf("(The first %d bytes of the output are left out.)\n\n%s", p.dropped, r.Text)
	}
	said := cli.LastLine(e.Stderr)
	switch s := cli.StatusOfCause(e); {
	case s != "":
		cli.Verdict{Status: s}.Apply(&r)
	case e.Exit.Code == 126 || e.Exit.Code == 127:
		cli.Verdict{Status: agent.StatusStartFailed, Said: said}.Apply(&r)
	case e.Exit.Code != 0 || e.Exit.Signal != "":
		cli.Verdict{Status: agent.StatusCrashed, Said: said}.Apply(&r)
	case p.cut:
		cli.Verdict{Status: agent.StatusAnswerCut, Reason: cli.ReasonTooLong}.Apply(&r)
	}
	return r
}
