package pushgate

import (
	"strings"

	"github.com/errand-bot/errand/internal/changeset"
)

// minLent is how long what is in such a file has to be to be told from anything else, in bytes.
const minLent = 12

// judgeLent refuses files that an operator lent to the checkout for its tests, in any commit: by their path, which
// file systems may write in another case, and by what is in them, whatever their path.
func judgeLent(s *subject) []Refusal {
	published := s.published()
	const remedy = "take it out of every commit; tests read it where it lies, and it is put there for every run"
	var refusals []Refusal
	s.each(func(_ judged, change changeset.Change) {
		if change.Deleted() || len(s.policy.Lent) == 0 {
			return
		}
		var data []byte
		if !published[change.Blob] {
			data, _ = s.content(change.Blob)
		}
		for path, lent := range s.policy.Lent {
			lent = strings.TrimSpace(lent)
			switch {
			case canonical(path) == canonical(change.Path):
				refusals = append(refusals, Refusal{Rule: RuleTestFiles, Path: change.Path, Detail: "this is a file that the operator of errand lends to tests", Remedy: remedy})
			case len(lent) >= minLent && strings.Contains(string(data), lent):
				refusals = append(refusals, Refusal{Rule: RuleTestFiles, Path: change.Path, Detail: "it holds a file that the operator of errand lends to tests", Remedy: remedy})
			}
		}
	})
	return refusals
}
