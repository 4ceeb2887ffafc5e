package simgithub

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRoutesMatchPaths(t *testing.T) {
	t.Parallel()
	table := []route{
		{method: "GET", pattern: "/repos/{owner}/{repo}/issues/{number}/comments"},
		{method: "GET", pattern: "/repos/{owner}/{repo}/issues/comments/{id}"},
		{method: "GET", pattern: "/repos/{owner}/{repo}/branches/{branch...}"},
		{method: "GET", pattern: "/repos/{owner}/{repo}/commits/{ref}/status"},
		{method: "GET", pattern: "/repos/{owner}/{repo}/commits/{ref...}"},
	}
	for path, want := range map[string]map[string]string{
		"/repos/o/r/issues/7/comments":        {"": table[0].pattern, "owner": "o", "repo": "r", "number": "7"},
		"/repos/o/r/issues/comments/7":        {"": table[1].pattern, "owner": "o", "repo": "r", "id": "7"},
		"/repos/o/r/branches/a/b":             {"": table[2].pattern, "owner": "o", "repo": "r", "branch": "a/b"},
		"/repos/o/r/branches/a%2Fb":           {"": table[2].pattern, "owner": "o", "repo": "r", "branch": "a/b"},
		"/repos/o/r/commits/heads%2Fx/status": {"": table[3].pattern, "owner": "o", "repo": "r", "ref": "heads/x"},
		"/repos/o/r/commits/heads/x":          {"": table[4].pattern, "owner": "o", "repo": "r", "ref": "heads/x"},
		"/repos/o/r/issues":                   nil,
		"/repos/o/r/issues/%zz/comments":      nil,
	} {
		rt, vars, ok := match(table, "GET", path)
		var got map[string]string
		if ok {
			got = vars
			got[""] = rt.pattern
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
}

func TestClosingWordsAndReferences(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Fixes #12":                    "#12",
		"closes: #3, resolves o/r#4":   "#3 o/r#4",
		"prefixes #5":                  "",
		"Fixed   #6 and fix #7":        "#6 #7",
		"see #8":                       "",
		"This closes\n#9":              "#9",
		"RESOLVED other-org/a.b_c#100": "other-org/a.b_c#100",
	} {
		var got []string
		for _, m := range closingWords.FindAllStringSubmatch(text, -1) {
			got = append(got, m[1]+"#"+m[2])
		}
		if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
	for text, want := range map[string]string{
		"see #8, o/r#9 (#10)": "#8 o/r#9 #10", "a#1 b": "", "https://x/y#2": "", "#3x": "",
	} {
		var got []string
		for _, m := range references.FindAllStringSubmatch(text, -1) {
			got = append(got, m[1]+"#"+m[2])
		}
		if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

func FuzzMatch(f *testing.F) {
	f.Add("GET", "/repos/o/r/issues/1")
	f.Add("PATCH", "/repos/o/r/git/refs/heads/a%2Fb")
	table := restTable()
	f.Fuzz(func(t *testing.T, method, path string) {
		rt, vars, ok := match(table, method, path)
		if ok && (rt.method != method || rt.handle == nil || vars == nil) {
			t.Errorf("%s %s: got a match %+v, want none", method, path, rt)
		}
	})
}
