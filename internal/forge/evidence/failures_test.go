package evidence_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/forge/evidence"
	"github.com/errand-bot/errand/internal/forge/forgetest"
	"github.com/errand-bot/errand/internal/provenance"
	"github.com/errand-bot/errand/internal/webtest"
	"github.com/errand-bot/errand/state"
)

// broken returns a reader of the scene whose GitHub answers requests with a text in their path or body in another way.
func (s *scene) broken(text string, status int, body string) *evidence.Reader {
	s.t.Helper()
	transport := roundTripper(func(r *http.Request) (*http.Response, error) {
		hit := strings.Contains(r.URL.Path, text)
		if r.GetBody != nil {
			hit = hit || strings.Contains(string(forgetest.Must(io.ReadAll(forgetest.Must(r.GetBody())(s.t)))(s.t)), text)
		}
		if !hit {
			return webtest.Transport().RoundTrip(r)
		}
		w := httptest.NewRecorder()
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.WriteString(body)
		out := w.Result()
		out.Request = r
		return out, nil
	})
	return forgetest.Must(evidence.New(evidence.Config{
		Token: s.token, WebURL: s.BaseURL(), APIURL: s.BaseURL() + "/api/v3/", GraphQLURL: s.BaseURL() + "/api/graphql",
		Transport: transport, Repository: forgetest.FullName,
	}))(s.t)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestFailuresOfGitHubAreNoVerdict: what cannot be read ends the verification with an error. Only GitHub's answer that there is no such thing
// is a verdict, and never that something was altered.
func TestFailuresOfGitHubAreNoVerdict(t *testing.T) {
	t.Parallel()
	const missing, forbidden = `{"message":"Not Found"}`, `{"message":"Resource not accessible by integration"}`
	s := newScene(t, state.ViaCommand)
	for name, c := range map[string]struct {
		text   string
		status int
		body   string
		want   string // the faults, "" for an error
	}{
		"the pull request, 404":  {text: "/pulls/2", status: http.StatusNotFound, body: missing},
		"the pull request, 502":  {text: "/pulls/2", status: http.StatusBadGateway},
		"the comments, 502":      {text: "pullRequest(", status: http.StatusBadGateway},
		"the comments, nonsense": {text: "pullRequest(", status: http.StatusOK, body: "<html>"},
		"the issue, 502":         {text: "issue(number", status: http.StatusBadGateway},
		"the issue, no permission": {text: "issue(number", status: http.StatusOK,
			body: `{"data":{"repository":{"issue":null}},"errors":[{"type":"FORBIDDEN","message":"Resource not accessible by integration"}]}`},
		"the issue, gone": {text: "issue(number", status: http.StatusOK,
			body: `{"data":{"repository":{"issue":null}},"errors":[{"type":"NOT_FOUND","message":"Could not resolve"}]}`, want: "issue: no longer visible"},
		"the plan, 502":    {text: "/issues/comments/", status: http.StatusBadGateway},
		"the plan, 403":    {text: "/issues/comments/", status: http.StatusForbidden, body: forbidden},
		"the plan, 404":    {text: "/issues/comments/", status: http.StatusNotFound, body: missing, want: "plan: no longer visible, approval: no longer visible"},
		"the commits, 502": {text: "/pulls/2/commits", status: http.StatusBadGateway},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := provenance.Verify(t.Context(), s.broken(c.text, c.status, c.body), 2, s.keys())
			if got := faults(r); (c.want == "") != (err != nil) || c.want != "" && got != c.want {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

// TestLargeBlobs: only GitHub's statement that a file is too large is taken for one.
func TestLargeBlobs(t *testing.T) {
	t.Parallel()
	s := newScene(t, state.ViaCommand)
	for name, c := range map[string]struct {
		status int
		body   string
		large  bool
	}{
		"too large":      {http.StatusForbidden, `{"message":"This blob is too large.","errors":[{"resource":"Blob","field":"data","code":"too_large"}]}`, true},
		"very long":      {http.StatusOK, strings.Repeat("x", 3<<20), true},
		"no permission":  {http.StatusForbidden, `{"message":"Resource not accessible by integration"}`, false},
		"does not exist": {http.StatusNotFound, `{"message":"Not Found"}`, false},
	} {
		_, err := s.broken("/git/blobs/", c.status, c.body).Blob(t.Context(), strings.Repeat("a", 40))
		if err == nil || errors.Is(err, provenance.ErrTooLarge) != c.large {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
