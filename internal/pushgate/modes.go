package pushgate

import (
	"fmt"

	"github.com/errand-bot/errand/internal/changeset"
)

// checkModes refuses modes that git does not store, and content that is missing from the changeset and so cannot be
// judged.
func checkModes(s *subject) []Refusal {
	var refusals []Refusal
	published := s.publishedBlobs()
	s.eachChange(func(_ checkedCommit, change changeset.Change) {
		switch change.Mode {
		case "", changeset.ModeSubmodule:
		case changeset.ModeFile, changeset.ModeExecutable, changeset.ModeSymlink:
			if published[change.Blob] {
				return // a merge that reverts a change of the base adds no content
			}
			if _, ok := s.blobContent(change.Blob); !ok {
				refusals = append(refusals, Refusal{
					Rule: RuleModes, Path: change.Path, Detail: "its content is missing from the changeset",
					Remedy: "run the task again; if it happens again, report it as a bug in errand",
				})
			}
		default:
			refusals = append(refusals, Refusal{
				Rule: RuleModes, Path: change.Path, Detail: fmt.Sprintf("the file mode %q is not one that git stores", string(change.Mode)),
				Remedy: "make it an ordinary or an executable file",
			})
		}
	})
	return refusals
}

// checkSubmodules refuses to add or move a submodule, because that would bring in code that has not been judged.
// Removing one is allowed.
func checkSubmodules(s *subject) []Refusal {
	var refusals []Refusal
	s.eachChange(func(_ checkedCommit, change changeset.Change) {
		switch {
		case change.Mode == changeset.ModeSubmodule:
			refusals = append(refusals, Refusal{
				Rule: RuleSubmodules, Path: change.Path, Detail: "a submodule was added or moved to another commit",
				Remedy: "leave submodules as they are, and check that no nested repository was added by accident",
			})
		case canonical(change.Path) == ".gitmodules" && !change.Deleted():
			refusals = append(refusals, Refusal{
				Rule: RuleSubmodules, Path: change.Path, Detail: "the list of submodules was changed",
				Remedy: "leave it as it is; only a person may change the sources of submodules",
			})
		}
	})
	return refusals
}
