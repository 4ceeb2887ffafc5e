package e2e

import (
	"context"
	"fmt"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/errand-bot/errand/internal/forge/evidence"
	"github.com/errand-bot/errand/internal/provenance"
	"github.com/errand-bot/errand/internal/webtest"
)

// verifyCmd verifies the story's pull request with the keys that errand publishes, as `errand verify` does, prints the links, and expects a
// result: verify RESULT.
func verifyCmd(ts *testscript.TestScript, _ bool, args []string) {
	s := of(ts)
	status, body, err := s.request("GET", provenance.KeysPath, false)
	ts.Check(err)
	if status != 200 {
		ts.Fatalf("the keys: status %d: %s", status, body)
	}
	keys, err := provenance.ParseKeys([]byte(body))
	ts.Check(err)
	number, err := s.number("pr")
	ts.Check(err)
	base := s.w.GitHub.BaseURL()
	reader, err := evidence.New(evidence.Config{
		Token: s.w.GitHub.Tokens()[0], WebURL: base, APIURL: base + "/api/v3/", GraphQLURL: base + "/api/graphql", Repository: s.full, // of a person
		Transport: webtest.Transport(),
	})
	ts.Check(err)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r, err := provenance.Verify(ctx, reader, number, keys)
	ts.Check(err)
	for _, l := range r.Links {
		fmt.Fprintf(ts.Stdout(), "%s: %s: %s\n", l.Name, l.Verdict, l.Detail)
	}
	if string(r.Result) != args[0] {
		ts.Fatalf("got result %q, want %q: %+v", r.Result, args[0], r.Links)
	}
}
