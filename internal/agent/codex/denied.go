package codex

import (
	"regexp"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/agent/cli"
)

// denialLine matches the line on standard error by which Codex reports that a call was refused, by the hook that calls
// the runner or by Codex's own deny rules. It reports that nowhere else.
var denialLine = regexp.MustCompile(`^\S+ +ERROR codex_core::tools::router: error=(Command blocked by PreToolUse hook: |.*\brejected: policy forbids commands )`)

var _ agent.StderrParser = (*parser)(nil)

// StderrLine counts the calls that the rules refused, for which Codex has no event.
func (p *parser) StderrLine(line string) {
	if len(p.denials) < cli.MaxDenials && denialLine.MatchString(line) {
		p.denials = append(p.denials, "shell")
	}
}
