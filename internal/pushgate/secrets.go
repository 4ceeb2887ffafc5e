package pushgate

import (
	"fmt"
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
				Remedy: "take it out of every commit and read it from the environment; if it is made up for a test, an operator can except the path",
			})
		}
	})
	return append(refusals, s.secretsInPaths()...)
}

// excused reports whether a finding is allowed by policy or was there before.
func (s *subject) excused(j judged, change changeset.Change, found secretscan.Finding, secret string) bool {
	if !found.Known() {
		for _, glob := range s.policy.SecretsAllowedIn {
			if matchFold(glob, change.Path) {
				return true
			}
		}
	}
	if j.hadBefore(s, change.Path, secret) {
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

func (s *subject) secretsInPaths() []Refusal {
	var refusals []Refusal
	s.each(func(_ judged, change changeset.Change) {
		for _, found := range s.policy.Scanner.Find(change.Path) {
			if found.Known() && !change.Deleted() {
				refusals = append(refusals, Refusal{
					Rule: RuleSecrets, Path: change.Path, Detail: "the name of the path holds a secret", Remedy: "give it another name",
				})
			}
		}
	})
	return refusals
}

// blank removes secrets from a refusal, whose path or detail may quote a hostile name.
func blank(scanner *secretscan.Scanner, r Refusal) Refusal {
	if scanner == nil {
		return r
	}
	clean := func(text string) string {
		found := scanner.Find(text)
		for i := len(found) - 1; i >= 0; i-- {
			text = text[:found[i].Start] + "[redacted]" + text[found[i].End:]
		}
		return text
	}
	r.Path, r.Detail = clean(r.Path), clean(r.Detail)
	return r
}
