package config

import (
	"fmt"
	"strings"
)

// Tools bounds what agents may call, by the rules that their programs have themselves. Those are no boundary: a
// command can be written in many ways. What leaves a VM is judged by the push gate, the proxy and the gateway.
type Tools struct {
	// Deny are commands that agents may not run, by how they begin: "terraform apply". Those that change where git
	// pushes to or its configuration, and sudo, are denied anyway, as are changes of protected paths.
	Deny []string `yaml:"deny"`
}

// The bounds of a list of denied commands.
const (
	maxDenied    = 50
	maxDenyChars = 200
)

func (t Tools) problems(r *report, key string) {
	r.unless(len(t.Deny) <= maxDenied, key+".deny", "%d commands are too many; write at most %d", len(t.Deny), maxDenied)
	for i, c := range t.Deny {
		plain := strings.TrimSpace(c) == c && c != "" && len(c) <= maxDenyChars && !strings.ContainsAny(c, "()*:\"'\\\n\r\t\x00")
		r.unless(plain, fmt.Sprintf("%s.deny[%d]", key, i), "%q: write how the command begins, such as terraform apply, without quotes, brackets and *", cut(c))
	}
}
