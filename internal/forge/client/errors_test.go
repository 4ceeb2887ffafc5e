package client_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/forge/forgetest"
)

// TestExplain checks the reasons and hints for people.
func TestExplain(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		status       int
		header       string
		body         any
		reason, hint string
		op           string
	}{
		"permission": {403, "issues=write", m{"message": "Resource not accessible by integration"},
			"GitHub does not allow it: Resource not accessible by integration.", "The App needs issues=write; an owner can accept it in the installation's settings.", "comment on octo/app#3: "},
		"permission unnamed": {403, "", m{"message": "Resource not accessible by integration"},
			"GitHub does not allow it: Resource not accessible by integration.", "An owner may have to accept the App's permissions in the installation's settings.", ""},
		"invalid": {422, "", m{"message": "Validation Failed", "errors": []m{{"field": "body", "code": "missing_field"}, {"message": "Too long."}}},
			"GitHub refused it: Validation Failed; body is missing field; Too long.", "", ""},
		"gone": {404, "", m{"message": "Not Found"}, "It does not exist on GitHub, or errand has no access to it.",
			"Check that the App is installed on the repository and has accepted its permissions.", ""},
		"broken": {500, "", m{}, "GitHub failed with an internal error (500).", "", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gh := forgetest.NewFake(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("X-Accepted-GitHub-Permissions", tt.header)
				forgetest.Answer(w, tt.status, tt.body)
			})
			f := forgetest.New(t, gh.URL)
			err := errOf(f.CreateComment(t.Context(), forgetest.Repo(), 3, "hello"))
			if class, _ := forge.Classify(err); tt.status == 403 && class == forge.ClassTemporary { // repeat it with a new token
				err = errOf(f.CreateComment(t.Context(), forgetest.Repo(), 3, "hello"))
			}
			reason, hint := forge.Explain(err)
			if diff := cmp.Diff([]string{tt.reason, tt.hint}, []string{reason, hint}); diff != "" {
				t.Error(diff)
			}
			if !strings.HasPrefix(err.Error(), tt.op) {
				t.Errorf("got error %q", err)
			}
		})
	}
}

func TestOtherErrorsAreUnknown(t *testing.T) {
	t.Parallel()
	other := errors.New("disk full")
	if class, at := forge.Classify(other); class != forge.ClassUnknown || !at.IsZero() {
		t.Errorf("got class %s at %s", class, at)
	}
	if reason, _ := forge.Explain(other); reason == "" {
		t.Error("the reason is empty")
	}
	if class, _ := forge.Classify(&forge.LimitError{}); class != forge.ClassTemporary {
		t.Errorf("got class %s", class)
	}
	moved := &forge.MovedError{Branch: "b", Want: "aaa"}
	if got := moved.Error(); got != "branch b is at no commit, expected aaa" {
		t.Errorf("got %q", got)
	}
}
