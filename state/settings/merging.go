package settings

import "encoding/json"

// DraftMode decides whether pull requests are opened as drafts. The empty one is DraftNever.
type DraftMode string

// The draft modes.
const (
	DraftNever      DraftMode = "never"
	DraftUntilGreen DraftMode = "until-green" // as drafts, which errand marks ready for review when their checks succeed
	DraftAlways     DraftMode = "always"      // as drafts, which people mark ready for review
)

// OpensDraft reports whether pull requests are opened as drafts.
func (m DraftMode) OpensDraft() bool { return m == DraftUntilGreen || m == DraftAlways }

// IsZero reports whether the mode is the default, which is not stored.
func (m DraftMode) IsZero() bool { return m == "" || m == DraftNever }

// MarshalJSON writes DraftAlways as true, because older versions stored a boolean.
func (m DraftMode) MarshalJSON() ([]byte, error) {
	if m == DraftAlways {
		return []byte("true"), nil
	}
	return json.Marshal(string(m))
}

// UnmarshalJSON reads what MarshalJSON writes, and the booleans of older versions.
func (m *DraftMode) UnmarshalJSON(data []byte) error {
	var old bool
	if json.Unmarshal(data, &old) == nil {
		*m = draftOf(old)
		return nil
	}
	return json.Unmarshal(data, (*string)(m))
}

// UnmarshalYAML also reads booleans, which were the only values once.
func (m *DraftMode) UnmarshalYAML(unmarshal func(any) error) error {
	var old bool
	if unmarshal(&old) == nil {
		*m = draftOf(old)
		return nil
	}
	return unmarshal((*string)(m))
}

func draftOf(old bool) DraftMode {
	if old {
		return DraftAlways
	}
	return DraftNever
}

// MergeMode decides who merges pull requests. The empty one is MergeNever.
type MergeMode string

// The merge modes.
const (
	MergeNever        MergeMode = "never"         // people
	MergeAllowed      MergeMode = "allowed"       // people, unless the repository says when-approved: of the operator's settings only
	MergeWhenApproved MergeMode = "when-approved" // errand, once a person with write access approved the newest commit and nothing else is missing
	MergeDenied       MergeMode = "denied"        // people, because the operator does not allow the repository's when-approved: of tasks only
)

// Of returns the mode of a repository that says m, under the operator's mode.
func (m MergeMode) Of(operator MergeMode) MergeMode {
	switch may := operator == MergeAllowed || operator == MergeWhenApproved; {
	case m == MergeWhenApproved && !may:
		return MergeDenied
	case m == MergeWhenApproved || m == "" && operator == MergeWhenApproved:
		return MergeWhenApproved
	}
	return MergeNever
}
