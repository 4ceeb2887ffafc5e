package secretscan

import "github.com/zricethezav/gitleaks/v8/config"

// hit is a match of a library rule, with the texts that the allow-lists check.
type hit struct {
	path, secret, match, line string
}

func (h hit) allowedBy(lists []*config.Allowlist) bool {
	for _, list := range lists {
		if h.isAllowedBy(list) {
			return true
		}
	}
	return false
}

// isAllowedBy applies one allow-list: any of its checks, or all of them if its condition requires that. Lists of
// commits never apply, because the scanned text has no published commit yet.
func (h hit) isAllowedBy(list *config.Allowlist) bool {
	target := h.secret
	switch list.RegexTarget {
	case "match":
		target = h.match
	case "line":
		target = h.line
	}
	var checks []bool
	if len(list.Commits) > 0 {
		checks = append(checks, false)
	}
	if len(list.Paths) > 0 {
		checks = append(checks, list.PathAllowed(h.path))
	}
	if len(list.Regexes) > 0 {
		checks = append(checks, list.RegexAllowed(target))
	}
	if len(list.StopWords) > 0 {
		stopped, _ := list.ContainsStopWord(h.secret)
		checks = append(checks, stopped)
	}
	all := len(checks) > 0
	for _, ok := range checks {
		if ok && list.MatchCondition == config.AllowlistMatchOr {
			return true
		}
		all = all && ok
	}
	return all
}
