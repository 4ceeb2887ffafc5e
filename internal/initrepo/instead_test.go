package initrepo

import (
	"slices"
	"testing"

	"github.com/errand-bot/errand/internal/scan"
)

// TestReplacements: the usual command of a language is tried if all targets failed that were proposed in its place, after what it needs was
// installed.
func TestReplacements(t *testing.T) {
	t.Parallel()
	const ok, bad, open = scan.Succeeded, scan.Failed, scan.Untried
	for name, row := range map[string]struct {
		install, lint, test, other scan.Status
		want                       []string
	}{
		"all succeeded":       {ok, ok, ok, ok, []string{"npm ci"}},
		"a linter failed":     {ok, bad, ok, ok, []string{"npm ci", "go vet ./..."}},
		"one of two failed":   {ok, ok, bad, ok, []string{"npm ci"}},
		"all failed":          {bad, bad, bad, bad, []string{"go vet ./...", "go test ./..."}},
		"the host lacks make": {open, open, open, open, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &scan.Report{Instead: []scan.Replaced{
				{Command: scan.Command{Run: "go vet ./...", Origin: "go.mod"}, By: []string{"make lint"}},
				{Command: scan.Command{Run: "go test ./...", Origin: "go.mod"}, By: []string{"make test", "make unit"}},
			}}
			for _, c := range []struct {
				run    string
				status scan.Status
			}{{"npm ci", row.install}, {"make lint", row.lint}, {"make test", row.test}, {"make unit", row.other}} {
				r.Check = append(r.Check, scan.Command{Run: c.run, Install: c.run == "npm ci", Outcome: &scan.Outcome{Status: c.status}})
			}
			list, installs := replacements(r)
			var got []string
			for i, c := range list {
				if got = append(got, c.Run); c.Outcome != nil || c.Install != (i < installs) {
					t.Errorf("%s begins with the outcome %+v", c.Run, c.Outcome)
				}
			}
			if !slices.Equal(got, row.want) {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
	if list, _ := replacements(&scan.Report{Instead: []scan.Replaced{{Command: scan.Command{Run: "go test ./..."}, By: []string{"make test"}}}}); list != nil {
		t.Errorf("without a trial, got %+v", list)
	}
}
