package agent

import "regexp"

// maxDenials bounds how many refused calls of one run are counted.
const maxDenials = 1000

// codexDenied is how Codex says on standard error, and nowhere else, that it has not made a call: the hook that asks the
// runner refused it, or Codex's own list of what is denied.
var codexDenied = regexp.MustCompile(`^\S+ +ERROR codex_core::tools::router: error=(Command blocked by PreToolUse hook: |.*\brejected: policy forbids commands )`)

var _ StderrParser = (*codexParser)(nil)

// StderrLine counts the calls that the rules refused. There is no event of them.
func (p *codexParser) StderrLine(line string) {
	if len(p.denials) < maxDenials && codexDenied.MatchString(line) {
		p.denials = append(p.denials, "shell")
	}
}
