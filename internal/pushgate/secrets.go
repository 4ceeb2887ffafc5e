package pushgate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/internal/secretscan"
)

// checkSecrets refuses secrets in content that the changeset adds, in each commit: a secret that a later commit removes
// would still be published. Secrets that were there before, in the same file or in one that the commit deletes or
// moves, are not attributed to the agent.
func checkSecrets(s *subject) []Refusal {
	if s.policy.Scanner == nil {
		if len(s.commits) == 0 {
			return nil
		}
		return []Refusal{{Rule: RuleSecrets, Detail: "the content could not be searched for secrets", Remedy: "ask an operator to check errand's setup"}}
	}
	published := s.publishedBlobs()
	done := map[string]bool{} // path and blob
	var refusals []Refusal
	s.eachChange(func(j checkedCommit, change changeset.Change) {
		key := change.Path + "\x00" + change.Blob
		if change.Deleted() || change.Mode == changeset.ModeSubmodule || published[change.Blob] || done[key] {
			return
		}
		done[key] = true
		data, _ := s.blobContent(change.Blob)
		if p, is := changeset.ParsePointer(data); is && s.cs.LFS[p.OID] != nil {
			data = s.cs.LFS[p.OID] // it would be published, too
		}
		text := string(data)
		for _, found := range s.policy.Scanner.FindIn(change.Path, text) {
			if s.isExcused(j, change, found, text[found.Start:found.End]) {
				continue
			}
			refusals = append(refusals, Refusal{
				Rule: RuleSecrets, Path: change.Path,
				Detail: fmt.Sprintf("line %d contains text that looks like a secret (%s)", found.Line(text), found.Rule),
				Remedy: s.secretRemedy("take it out of every commit and read it from the environment", change.Path, found),
			})
		}
	})
	return append(refusals, s.secretsInPaths()...)
}

// isExcused reports whether a finding is allowed by policy or existed before.
func (s *subject) isExcused(j checkedCommit, change changeset.Change, found secretscan.Finding, secret string) bool {
	if !found.Known() && s.policy.secretsAllowedIn(change.Path) || j.containedBefore(s, change.Path, secret) {
		return true
	}
	for _, other := range j.commit.Changes {
		if other.Deleted() && j.containedBefore(s, other.Path, secret) {
			return true
		}
	}
	entry, ok := j.merged[change.Path]
	if !ok {
		return false
	}
	data, _ := s.blobContent(entry.Blob)
	return strings.Contains(string(data), secret)
}

// containedBefore reports whether a path that the commit changes contained the secret before.
func (j checkedCommit) containedBefore(s *subject, path, secret string) bool {
	data, ok := s.blobContent(j.before[path])
	return ok && strings.Contains(string(data), secret)
}

// secretsAllowedIn reports whether the operator allows text that looks like a secret in a path and the repository does
// not withdraw that.
func (p *Policy) secretsAllowedIn(path string) bool {
	own := p.Repository.SecretsAllowedIn
	return matchesExactly(p.Operator.SecretsAllowedIn, path) && (own == nil || matchesExactly(own, path))
}

// secretRemedy adds the settings that would allow the finding to a remedy. No setting allows a known value.
func (s *subject) secretRemedy(remedy, path string, found secretscan.Finding) string {
	if found.Known() {
		return remedy
	}
	remedy += "; if it is test data, change it so that it does not look like a secret"
	glob, own := s.globFor(path), s.policy.Repository.SecretsAllowedIn
	var needed []suggestion
	for _, side := range []struct {
		list     []string
		operator bool
	}{{s.policy.Operator.SecretsAllowedIn, true}, {own, false}} {
		if !side.operator && own == nil || matchesExactly(side.list, path) {
			continue
		}
		value, ok := yamlList(append(slices.Clone(side.list), glob))
		if !ok {
			return remedy
		}
		needed = append(needed, suggestion{key: "secrets_allowed_in", value: value, operator: side.operator})
	}
	return withSuggestions(remedy, needed...)
}

// secretsInPaths refuses secrets in the names of files, folders, links and submodules. A name that the base has at the
// same place, or that the same commit deletes, existed before.
func (s *subject) secretsInPaths() []Refusal {
	before := map[string]bool{}
	for p := range s.policy.Base {
		withParents(p, func(name string) { before[name] = true })
	}
	var refusals []Refusal
	s.eachChange(func(j checkedCommit, change changeset.Change) {
		if _, merged := j.merged[change.Path]; merged || change.Deleted() {
			return
		}
		if hidesSecret(s.policy.Scanner, change.Path) && !before[change.Path] {
			refusals = append(refusals, Refusal{
				Rule: RuleSecrets, Path: change.Path, Detail: "the path's name contains text that looks like a secret, split by invisible characters",
				Remedy: "give it another name in every commit",
			})
		}
		for _, found := range s.policy.Scanner.Find(change.Path) {
			if s.isExcusedName(j, change.Path, found, before) {
				continue
			}
			detail := "the path's name contains text that looks like a secret (" + found.Rule + ")"
			if found.Known() {
				detail = "the path's name contains a secret"
			}
			refusals = append(refusals, Refusal{
				Rule: RuleSecrets, Path: change.Path, Detail: detail, Remedy: s.secretRemedy("give it another name in every commit", change.Path, found),
			})
		}
	})
	return refusals
}

// isExcusedName reports whether a finding in a path is allowed by policy or existed before: in the base, or in a path
// that the same commit deletes.
func (s *subject) isExcusedName(j checkedCommit, path string, found secretscan.Finding, before map[string]bool) bool {
	end := len(path)
	if i := strings.IndexByte(path[found.End:], '/'); i >= 0 {
		end = found.End + i
	}
	moved := slices.ContainsFunc(j.commit.Changes, func(other changeset.Change) bool {
		_, existed := j.before[other.Path] // a VM may claim to delete a path that never existed
		return existed && other.Deleted() && strings.Contains(other.Path, path[found.Start:found.End])
	})
	return before[path[:end]] || moved || !found.Known() && s.policy.secretsAllowedIn(path)
}

// hidesSecret reports whether a path contains a secret that is detected only without its invisible characters.
func hidesSecret(scanner *secretscan.Scanner, path string) bool {
	return path != removeInvisible(path) && len(scanner.Find(removeInvisible(path))) > len(scanner.Find(path))
}

// globFor returns a narrow glob that matches the path, with stars in place of secrets.
func (s *subject) globFor(path string) string {
	var found []secretscan.Finding
	if s.policy.Scanner != nil {
		found = s.policy.Scanner.Find(path)
	}
	var b strings.Builder
	at := 0
	for _, f := range found {
		b.WriteString(globFor(path[at:f.Start]) + "*" + strings.Repeat("/*", strings.Count(path[f.Start:f.End], "/")))
		at = f.End
	}
	return b.String() + globFor(path[at:])
}

// redactRefusal removes secrets from a refusal, whose path or detail may quote a hostile name, and quotes a path that
// cannot be displayed as it is.
func redactRefusal(scanner *secretscan.Scanner, r Refusal) Refusal {
	path := r.Path
	if scanner != nil {
		if hidesSecret(scanner, path) {
			path, r.Detail = removeInvisible(path), removeInvisible(r.Detail)
		}
		for _, f := range scanner.Find(path) { // the detail may quote one part of the path, and so a part of the secret
			for part := range strings.SplitSeq(path[f.Start:f.End], "/") {
				if len(part) > 2 {
					r.Detail = strings.ReplaceAll(r.Detail, part, "[redacted]")
				}
			}
		}
		r.Path, r.Detail = redactSecrets(scanner, path), redactSecrets(scanner, r.Detail)
	}
	if r.Rule == RulePaths && pathProblem(path) != "" || path != removeInvisible(path) {
		r.Path = fmt.Sprintf("%+q", r.Path)
	}
	return r
}

func redactSecrets(scanner *secretscan.Scanner, text string) string {
	found := scanner.Find(text)
	for i := len(found) - 1; i >= 0; i-- {
		text = text[:found[i].Start] + "[redacted]" + text[found[i].End:]
	}
	return text
}
