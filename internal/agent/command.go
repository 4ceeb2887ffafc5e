package agent

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/errand-bot/errand/internal/runlog"
)

// command runs any program as an agent: it gets the prompt on stdin, its stdout is the answer, and exit status 0 means
// success. Further information is in its environment:
//
//	ERRAND_STEP, ERRAND_MODEL, ERRAND_WORKDIR, ERRAND_MAX_TURNS
//	ERRAND_SYSTEM_FILE   a file with the rules that belong into a system prompt
//	ERRAND_MODEL_URL, ERRAND_MODEL_TOKEN   the model endpoint and the credential for it
//	ERRAND_RESUME        set if this is a continuation; errand keeps no session for it
//
// The program need not use git: the runner commits the changes that it leaves in the checkout. The command {aider} is a
// preset for Aider.
type command struct{ cfg Config }

var _ Adapter = (*command)(nil)

func (c *command) Name() string { return NameCommand }

// Capabilities reports that a limit on turns is only passed to the program, not enforced.
func (c *command) Capabilities() Capabilities { return Capabilities{NoTurnLimit: true} }

func (c *command) Command(s Spec) (Cmd, error) {
	switch {
	case strings.TrimSpace(s.Prompt) == "":
		return Cmd{}, errors.New("agent command: the prompt is empty")
	case !path.IsAbs(s.WorkDir) || !path.IsAbs(s.Home) || !path.IsAbs(s.RunDir):
		return Cmd{}, errors.New("agent command: a directory is not absolute")
	case len(s.Schema) > 0:
		return Cmd{}, errors.New("agent command: this adapter cannot hold an answer to a schema")
	}
	env := maps.Clone(c.cfg.Env)
	if env == nil {
		env = map[string]string{}
	}
	rules := path.Join(s.RunDir, "rules.md")
	for name, value := range map[string]string{
		"HOME":               s.Home,
		"ERRAND_STEP":        s.Step,
		"ERRAND_MODEL":       firstOf(s.Model, c.cfg.ModelFor(s.Step)),
		"ERRAND_WORKDIR":     s.WorkDir,
		"ERRAND_MAX_TURNS":   strconv.Itoa(firstOf(s.MaxTurns, DefaultMaxTurns)),
		"ERRAND_SYSTEM_FILE": rules,
		"ERRAND_MODEL_URL":   s.BaseURL,
		"ERRAND_MODEL_TOKEN": s.RunToken,
		"ERRAND_RESUME":      s.Resume,
	} {
		if value != "" {
			env[name] = value
		}
	}
	return Cmd{
		Argv:  preset(c.cfg.Command),
		Env:   env,
		Stdin: []byte(s.Prompt),
		Files: []File{{Path: rules, Mode: 0o600, Content: []byte(s.System)}},
	}, nil
}

func (c *command) NewParser() Parser { return &commandParser{} }

// SessionFiles returns nil: errand knows no sessions of such a program.
func (c *command) SessionFiles(string, string, string) []string { return nil }

// commandParser keeps the end of a program's output.
type commandParser struct {
	lines   []string
	size    int
	dropped int  // bytes that were dropped before
	cut     bool // the end of the newest non-empty line is missing
}

var _ Parser = (*commandParser)(nil)

// Line treats every line as the agent's text.
func (p *commandParser) Line(line []byte) []runlog.Event {
	text := strings.ToValidUTF8(string(line), "\uFFFD")
	p.lines = append(p.lines, text)
	p.size += len(text) + 1
	for p.size > maxAnswer && len(p.lines) > 1 {
		gone := len(p.lines[0]) + 1
		p.size, p.dropped, p.lines = p.size-gone, p.dropped+gone, p.lines[1:]
	}
	if strings.TrimSpace(text) != "" {
		p.cut = false
	}
	return []runlog.Event{{Kind: runlog.KindText, Text: cutText(text, maxOwnText)}}
}

// Cut notes in the text how many bytes of a line are missing. An answer whose last line is incomplete does not count.
func (p *commandParser) Cut(line []byte, missing int) []runlog.Event {
	events := p.Line(fmt.Appendf(slices.Clone(line), "… (%d bytes of this line are missing)", missing))
	p.cut = true
	return events
}

func (p *commandParser) Exit(e Ended) Result {
	r := Result{Status: StatusOK, Text: strings.TrimSpace(strings.Join(p.lines, "\n")), Turns: 1}
	if p.dropped > 0 {
		r.Text = fmt.Sprintf("(The first %d bytes of the output are left out.)\n\n%s", p.dropped, r.Text)
	}
	said := lastLine(e.Stderr)
	switch s := ofCause(e); {
	case s != "":
		r.judge(verdict{status: s})
	case e.Exit.Code == 126 || e.Exit.Code == 127:
		r.judge(verdict{status: StatusStartFailed, said: said})
	case e.Exit.Code != 0 || e.Exit.Signal != "":
		r.judge(verdict{status: StatusCrashed, said: said})
	case p.cut:
		r.judge(verdict{status: StatusAnswerCut, why: cutTooLong})
	}
	return r
}
