package agent

import "regexp"

// maxDenials bounds the recorded denials of one run.
const maxDenials = 1000

// codexDenied matches the line on standard error by which Codex reports that a call was refused, by the hook that calls
// the runner or by Codex's own deny rules. It reports that nowhere else.
var codexDenied = regexp.MustCompile(`^\S+ +ERROR codex_core::tools::router: error=(Command blocked by PreToolUse hook: |.*\brejected: policy forbids commands )`)

var _ StderrParser = (*codexParser)(nil)

// StderrLine counts the calls that the rules refused, for which Codex has no event.
func (p *codexParser) StderrLine(line string) {
	if len(p.denials) < maxDenials && codexDenied.MatchString(line) {
		p.denials = append(p.denials, "shell")
	}
}
