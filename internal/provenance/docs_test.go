package provenance

import (
	"encoding/json"
	"os"
	"os/exec"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/errand-bot/errand/state"
)

// TestEveryFieldIsDocumented: docs/provenance.md names each field of a statement.
func TestEveryFieldIsDocumented(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../docs/provenance.md")
	if err != nil {
		t.Fatal(err)
	}
	_, fields, ok := strings.Cut(string(data), "## Field by field")
	if !ok {
		t.Fatal("the page has no list of fields")
	}
	n := 0
	var visit func(at reflect.Type)
	visit = func(at reflect.Type) {
		for at.Kind() == reflect.Pointer || at.Kind() == reflect.Slice {
			at = at.Elem()
		}
		if at.Kind() != reflect.Struct || at.PkgPath() != reflect.TypeFor[Predicate]().PkgPath() {
			return
		}
		for i := range at.NumField() {
			f := at.Field(i)
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
				if n++; !strings.Contains(fields, name) {
					t.Errorf("%s.%s: the page does not name %q", at.Name(), f.Name, name)
				}
			}
			visit(f.Type)
		}
	}
	visit(reflect.TypeFor[Predicate]())
	if n < 60 {
		t.Errorf("only %d fields were checked", n)
	}
}

// TestDocumentedQueries: the queries in docs/provenance.md accept a report that is as they say, and no other, also where something is missing.
func TestDocumentedQueries(t *testing.T) {
	t.Parallel()
	jq, err := exec.LookPath("jq")
	if err != nil {
		t.Skip("skipped: jq is not installed, with which the documented queries are tried")
	}
	data, err := os.ReadFile("../../docs/provenance.md")
	if err != nil {
		t.Fatal(err)
	}
	queries := regexp.MustCompile(`(?m)^jq -e '([^']+)' report\.json`).FindAllStringSubmatch(string(data), -1)
	if len(queries) != 2 {
		t.Fatalf("got %d queries", len(queries))
	}
	passed := []state.PublishedCheck{{Name: "test", Outcome: state.CheckPassed}}
	failed := append(passed[:1:1], state.PublishedCheck{Name: "lint", Outcome: state.CheckFailed, Code: 1})
	for name, c := range map[string]struct {
		change  func(c *chain)
		people  bool
		checked bool
	}{
		"two people, and checks":     {func(*chain) {}, true, true},
		"the one who requested it":   {func(c *chain) { c.task.Trigger.By = c.task.Approval.By }, false, true},
		"no approval":                {func(c *chain) { c.d = func(p *Predicate) { p.Approval = nil } }, false, true},
		"an approval by settings":    {func(c *chain) { c.task.Approval = &state.Approval{Via: state.ViaSettings} }, false, true},
		"a failed check":             {func(c *chain) { c.task.Publications[0].Checks = failed }, true, false},
		"no checks":                  {func(c *chain) { c.task.Publications[0].Checks, c.task.Publications[1].Checks = nil, nil }, true, false},
		"no checks of one changeset": {func(c *chain) { c.task.Publications[1].Checks = nil }, true, false},
		"an update by GitHub": {func(c *chain) {
			c.task.AddUpdate(state.Publication{Head: hex40(9), Tree: hex40(8), Update: &state.BranchUpdate{Method: state.UpdateMerge, Before: c.task.Publications[1].Head}}, day1)
			c.gh.commits = append(c.gh.commits, CommitInfo{ID: hex40(9), Tree: hex40(8)})
		}, true, true},
		"no statement": {nil, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := Report{Links: []Link{}}
			if c.change != nil {
				x := newChain(2, 1)
				x.task.Trigger.By = state.Person{ID: 77, Login: "rita"}
				x.task.Publications[0].Checks, x.task.Publications[1].Checks = passed, passed
				c.change(x)
				r = x.verify(t)
			}
			report, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range []bool{c.people, c.checked} {
				cmd := exec.CommandContext(t.Context(), jq, "-e", queries[i][1])
				cmd.Stdin = strings.NewReader(string(report))
				if out, err := cmd.CombinedOutput(); (err == nil) != want {
					t.Errorf("%s: got %v, %s, want %v", queries[i][1], err, out, want)
				}
			}
		})
	}
}
