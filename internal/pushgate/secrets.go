package pushgate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/internal/secretscan"
)

// judgeSecrets refuses secrets in content that the changeset adds, in any of its commits: a secret
// that a later commit removes would be published all the same. What stood there before, in the
// same file or in one that the commit deletes or moves, is not the agent's doing.
func judgeSecrets(s *subject) []Refusal {
	if s.policy.Scanner == nil {
		if len(s.commits) == 0 {
			return nil
		}
		return []Refusal{{Rule: RuleSecrets, Detail: "the content could not be searched for secrets", Remedy: "have an operator check the set-up of errand"}}
	}
	published := s.published()
	done := map[string]bool{} // path and blob
	var refusals []Refusal
	s.each(func(j judged, change changeset.Change) {
		key := change.Path + "\x00" + change.Blob
		if change.Deleted() || change.Mode == changeset.ModeSubmodule || published[change.Blob] || done[key] {
			return
		}
		done[key] = true
		data, _ := s.content(change.Blob)
		if p, is := changeset.ParsePointer(data); is && s.cs.LFS[p.OID] != nil {
			data = s.cs.LFS[p.OID] // it is published just as well
		}
		text := string(data)
		for _, found := range s.policy.Scanner.FindIn(change.Path, text) {
			if s.excused(j, change, found, text[found.Start:found.End]) {
				continue
			}
			refusals = append(refusals, Refusal{
				Rule: RuleSecrets, Path: change.Path,
				Detail: fmt.Sprintf("line %d holds what looks like a secret (%s)", found.Line(text), found.Rule),
				Remedy: s.secretRemedy("take it out of every commit and read it from the environment", change.Path, found),
			})
		}
	})
	return append(refusals, s.secretsInPaths()...)
}

// excused reports whether a finding is allowed by policy or was there before.
func (s *subject) excused(j judged, change changeset.Change, found secretscan.Finding, secret string) bool {
	if !found.Known() && s.policy.secretsAllowedIn(change.Path) || j.hadBefore(s, change.Path, secret) {
		return true
	}
	for _, other := range j.commit.Changes {
		if other.Deleted() && j.hadBefore(s, other.Path, secret) {
			return true
		}
	}
	entry, ok := j.merged[change.Path]
	if !ok {
		return false
	}
	data, _ := s.content(entry.Blob)
	return strings.Contains(string(data), secret)
}

// hadBefore reports whether a path that the commit changes held the secret before it.
func (j judged) hadBefore(s *subject, path, secret string) bool {
	data, ok := s.content(j.before[path])
	return ok && strings.Contains(string(data), secret)
}

// secretsAllowedIn reports whether the operator lets a path hold what looks like a secret, and the repository does
// not give that up.
func (p *Policy) secretsAllowedIn(path string) bool {
	own := p.Repository.SecretsAllowedIn
	return matchesExactly(p.Operator.SecretsAllowedIn, path) && (own == nil || matchesExactly(own, path))
}

// secretRemedy adds to a remedy which settings would let the finding pass. A known value passes with none.
func (s *subject) secretRemedy(remedy, path string, found secretscan.Finding) string {
	if found.Known() {
		return remedy
	}
	remedy += "; if it was made up for a test, give it a form that cannot be taken for a secret"
	glob, own := s.globFor(path), s.policy.Repository.SecretsAllowedIn
	var needed []suggestion
	for _, side := range []struct {
		list     []string
		operator bool
	}{{s.policy.Operator.SecretsAllowedIn, true}, {own, false}} {
		if !side.operator && own == nil || matchesExactly(side.list, path) {
			continue
		}
		value, ok := listOf(append(slices.Clone(side.list), glob))
		if !ok {
			return remedy
		}
		needed = append(needed, suggestion{key: "secrets_allowed_in", value: value, operator: side.operator})
	}
	return orSet(remedy, needed...)
}

// secretsInPaths refuses secrets in the names of files, folders, links and submodules. What the base has in the
// same place, or the same commit deletes, was there before.
func (s *subject) secretsInPaths() []Refusal {
	before := map[string]bool{}
	for p := range s.policy.Base {
		withParents(p, func(name string) { before[name] = true })
	}
	var refusals []Refusal
	s.each(func(j judged, change changeset.Change) {
		if _, merged := j.merged[change.Path]; merged || change.Deleted() {
			return
		}
		if parted(s.policy.Scanner, change.Path) && !before[change.Path] {
			refusals = append(refusals, Refusal{
				Rule: RuleSecrets, Path: change.Path, Detail: "the path's name holds what looks like a secret, with characters in it that are not shown",
				Remedy: "give it another name in every commit",
			})
		}
		for _, found := range s.policy.Scanner.Find(change.Path) {
			if s.excusedName(j, change.Path, found, before) {
				continue
			}
			detail := "the path's name holds what looks like a secret (" + found.Rule + ")"
			if found.Known() {
				detail = "the path's name holds a secret"
			}
			refusals = append(refusals, Refusal{
				Rule: RuleSecrets, Path: change.Path, Detail: detail, Remedy: s.secretRemedy("give it another name in every commit", change.Path, found),
			})
		}
	})
	return refusals
}

// excusedName reports whether a finding in a path is allowed by policy or was there before: in the base, or in a path
// that the same commit deletes.
func (s *subject) excusedName(j judged, path string, found secretscan.Finding, before map[string]bool) bool {
	end := len(path)
	if i := strings.IndexByte(path[found.End:], '/'); i >= 0 {
		end = found.End + i
	}
	moved := slices.ContainsFunc(j.commit.Changes, func(other changeset.Change) bool {
		_, existed := j.before[other.Path] // a VM may name a deletion of what was never there
		return existed && other.Deleted() && strings.Contains(other.Path, path[found.Start:found.End])
	})
	return before[path[:end]] || moved || !found.Known() && s.policy.secretsAllowedIn(path)
}

// parted reports whether a path holds a secret that only characters which are not shown keep from being found.
func parted(scanner *secretscan.Scanner, path string) bool {
	return path != visible(path) && len(scanner.Find(visible(path))) > len(scanner.Find(path))
}

// globFor returns a glob that matches the path, and little else: stars stand for the secrets in it.
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

// blank removes secrets from a refusal, whose path or detail may quote a hostile name, and quotes a path that
// could not be shown as it is.
func blank(scanner *secretscan.Scanner, r Refusal) Refusal {
	path := r.Path
	if scanner != nil {
		if parted(scanner, path) {
			path, r.Detail = visible(path), visible(r.Detail)
		}
		for _, f := range scanner.Find(path) { // the detail may name one part of the path, and so a part of the secret
			for part := range strings.SplitSeq(path[f.Start:f.End], "/") {
				if len(part) > 2 {
					r.Detail = strings.ReplaceAll(r.Detail, part, "[redacted]")
				}
			}
		}
		r.Path, r.Detail = withoutSecrets(scanner, path), withoutSecrets(scanner, r.Detail)
	}
	if r.Rule == RulePaths && badForm(path) != "" || path != visible(path) {
		r.Path = fmt.Sprintf("%+q", r.Path)
	}
	return r
}

func withoutSecrets(scanner *secretscan.Scanner, text string) string {
	found := scanner.Find(text)
	for i := len(found) - 1; i >= 0; i-- {
		text = text[:found[i].Start] + "[redacted]" + text[found[i].End:]
	}
	return text
}
