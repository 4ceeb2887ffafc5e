package settings

import (
	"encoding/json"
	"errors"
	"testing"
)

// TestDraftModeReadsBooleans: tasks of older versions have a boolean.
func TestDraftModeReadsBooleans(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]DraftMode{
		`{"draft":true}`: DraftAlways, `{"draft":false}`: DraftNever, `{}`: "", `{"draft":"until-green"}`: DraftUntilGreen,
	} {
		var s, again Settings
		if err := json.Unmarshal([]byte(data), &s); err != nil || s.Draft != want {
			t.Errorf("%s: got %q, %v, want %q", data, s.Draft, err, want)
		}
		stored, err := json.Marshal(s)
		if err := errors.Join(err, json.Unmarshal(stored, &again)); err != nil || again.Draft.OpensDraft() != s.Draft.OpensDraft() || again.Draft.IsZero() != s.Draft.IsZero() {
			t.Errorf("%s: got %q after it was stored as %s, %v", data, again.Draft, stored, err)
		}
	}
	if err := json.Unmarshal([]byte(`{"draft":7}`), new(Settings)); err == nil {
		t.Error("a number was accepted")
	}
}

// TestMergeModeOf: a repository lets errand merge only if the operator does.
func TestMergeModeOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ operator, repository, want MergeMode }{
		{MergeNever, "", MergeNever}, {MergeNever, MergeNever, MergeNever}, {MergeNever, MergeWhenApproved, MergeDenied}, {"", MergeWhenApproved, MergeDenied},
		{MergeAllowed, "", MergeNever}, {MergeAllowed, MergeNever, MergeNever}, {MergeAllowed, MergeWhenApproved, MergeWhenApproved},
		{MergeWhenApproved, "", MergeWhenApproved}, {MergeWhenApproved, MergeNever, MergeNever}, {MergeWhenApproved, MergeWhenApproved, MergeWhenApproved},
	} {
		if got := c.repository.Of(c.operator); got != c.want {
			t.Errorf("%q under %q: got %q", c.repository, c.operator, got)
		}
	}
}
