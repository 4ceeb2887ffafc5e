package pushgate

import (
	"strings"

	"github.com/errand-bot/errand/internal/changeset"
)

// minLentFileBytes is the minimum size of a lent file whose content is searched for; shorter content could match by
// accident.
const minLentFileBytes = 12

// checkLentFiles refuses, in every commit, the files that an operator lent to the checkout for its tests: by path, in
// any spelling that a file system treats as equal, and by content under any path.
func checkLentFiles(s *subject) []Refusal {
	published := s.publishedBlobs()
	const remedy = "remove it from every commit; errand adds it to the checkout before every run, so tests can read it there"
	var refusals []Refusal
	s.eachChange(func(_ checkedCommit, change changeset.Change) {
		if change.Deleted() || len(s.policy.LentFiles) == 0 {
			return
		}
		var data []byte
		if !published[change.Blob] {
			data, _ = s.blobContent(change.Blob)
		}
		for path, lent := range s.policy.LentFiles {
			lent = strings.TrimSpace(lent)
			switch {
			case canonical(path) == canonical(change.Path):
				refusals = append(refusals, Refusal{Rule: RuleTestFiles, Path: change.Path, Detail: "this is a file that the operator of errand lends to tests", Remedy: remedy})
			case len(lent) >= minLentFileBytes && strings.Contains(string(data), lent):
				refusals = append(refusals, Refusal{Rule: RuleTestFiles, Path: change.Path, Detail: "it holds a file that the operator of errand lends to tests", Remedy: remedy})
			}
		}
	})
	return refusals
}
