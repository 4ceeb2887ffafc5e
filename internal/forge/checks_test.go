package forge_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/forge/forgetest"
	"github.com/errand-bot/errand/internal/forge/green"
	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// outline returns a report in one line: the newest checks with their states, "!" for required ones, the requirements and the gaps.
func outline(r green.Report) string {
	var parts []string
	for _, c := range green.Newest(r.Checks) {
		s := c.Name + "=" + string(c.State)
		if c.Required {
			s += "!"
		}
		parts = append(parts, s)
	}
	for _, q := range r.Required {
		s := "needs " + q.Name
		if q.App != 0 {
			s += fmt.Sprintf("@%d", q.App)
		}
		parts = append(parts, s)
	}
	if n := r.Total - len(r.Checks); n != 0 {
		parts = append(parts, fmt.Sprintf("%d hidden", n))
	}
	if r.Workflows > 0 {
		parts = append(parts, fmt.Sprintf("(%d workflows)", r.Workflows))
	}
	if r.Incomplete != "" {
		parts = append(parts, "("+r.Incomplete+")")
	}
	return strings.Join(parts, " ")
}

const (
	noChecks = "(GitHub does not let errand read all checks, for which the App needs the permissions checks: read and statuses: read)"
	noRules  = "(GitHub does not let errand read the rules of the base branch)"

	changed = "(the checks or the base branch changed while errand read them)"

	noProtection = "(GitHub does not let errand read the protection of the base branch)"
)

func TestChecks(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	p := openPR(t, w, "errand/1")
	read := func(head, want string) {
		t.Helper()
		got := forgetest.Must(w.Forge.Checks(t.Context(), w.Repo, p.Number, head))(t)
		if diff := cmp.Diff(want, outline(got)); diff != "" || got.Head != p.Head {
			t.Errorf("head %s\n%s", got.Head, diff)
		}
	}
	report := func(name, conclusion string) {
		t.Helper()
		if err := w.CheckRun(forgetest.FullName, p.Head, name, conclusion, "a summary"); err != nil {
			t.Fatal(err)
		}
	}
	head := p.Head
	read(strings.Repeat("1", 40), "") // the pull request never had that head
	read(head, "")
	if err := w.RequireChecks(forgetest.FullName, "main", simgithub.RequiredCheck{Context: "build", App: 15368},
		simgithub.RequiredCheck{Context: "e2e"}, simgithub.RequiredCheck{Context: "old", Classic: true}); err != nil {
		t.Fatal(err)
	}
	const needs = "needs old needs build@15368 needs e2e"
	read(head, needs)
	report("build", "failure")
	report("docs", "failure")
	read(head, "build=failure! docs=failure "+needs)
	report("build", "") // repeated
	read(head, "build=pending! docs=failure "+needs)
	report("build", "skipped")
	report("old", "cancelled")
	report("e2e", "neutral")
	read(head, "build=success! docs=failure e2e=success! old=failure! "+needs)
	if err := w.Job(forgetest.FullName, head, simgithub.Job{Workflow: "release.yml", Name: "build", Conclusion: "failure"}); err != nil { // older than the next run of ci.yml
		t.Fatal(err)
	}
	report("build", "success")
	read(head, "build=success! build=failure! docs=failure e2e=success! old=failure! "+needs)

	for i := range 230 { // three pages
		report(fmt.Sprintf("matrix %03d", i), "success")
	}
	got := forgetest.Must(w.Forge.Checks(t.Context(), w.Repo, p.Number, head))(t)
	if n := len(green.Newest(got.Checks)); n != 235 || got.Total != len(got.Checks) || got.Incomplete != "" {
		t.Errorf("got %d checks, total %d of %d, incomplete %q", n, got.Total, len(got.Checks), got.Incomplete)
	}
	c := got.Checks[0]
	if c.App != 15368 || c.Result != "failure" || c.Started.IsZero() || c.Changed.IsZero() || c.Summary != "build" || !strings.Contains(c.URL, "/runs/") {
		t.Errorf("got %+v", c)
	}
}

// Without permissions the readable part is returned, and the report says that it is incomplete.
func TestChecksWithoutPermission(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	p := openPR(t, w, "errand/1")
	if err := w.CheckRun(forgetest.FullName, p.Head, "build", "success", ""); err != nil {
		t.Fatal(err)
	}
	w.GrantPermissions("octo", map[string]string{"metadata": "read", "contents": "read", "pull_requests": "read"})
	got := forgetest.Must(w.Forge.Checks(t.Context(), w.Repo, p.Number, p.Head))(t)
	if diff := cmp.Diff(noChecks, outline(got)); diff != "" {
		t.Error(diff)
	}
	if v := green.Judge(got, time.Now(), 0); v.State != green.None {
		t.Errorf("got %+v", v)
	}
	if _, err := w.Forge.CreateComment(t.Context(), w.Repo, 1, "no permission"); err == nil {
		t.Error("a comment was created without permission")
	}
}

// fakeChecks is a GitHub that answers the questions about checks.
type fakeChecks struct {
	pages      []m // of the rollup
	heads      []string
	bases      []string // rel/1 if empty
	branch     m        // the base; without a protection if nil
	problems   []m      // errors of GraphQL
	status     int      // of the rules, if not 200
	message    string   // of that answer
	rules      []m
	runs       []m // by REST
	statuses   []m
	noStatuses bool
}

func (f *fakeChecks) serve(t *testing.T) *forgetest.Fake {
	asked := 0
	return forgetest.NewFake(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/graphql"):
			n := asked
			asked++
			object := m{"__typename": "Commit", "statusCheckRollup": nil}
			if len(f.pages) > 0 {
				object["statusCheckRollup"] = m{"contexts": f.pages[min(n, len(f.pages)-1)]}
			}
			pull := m{"headRefOid": f.heads[min(n, len(f.heads)-1)], "baseRefName": "rel/1"}
			if len(f.bases) > n {
				pull["baseRefName"] = f.bases[n]
			}
			forgetest.Answer(w, 200, m{"data": m{"repository": m{"pullRequest": pull, "object": object}}, "errors": f.problems})
		case strings.HasSuffix(r.URL.EscapedPath(), "/rules/branches/rel%2F1"):
			if f.status != 0 {
				forgetest.Answer(w, f.status, m{"message": f.message})
				return
			}
			forgetest.Answer(w, 200, f.rules)
		case strings.HasSuffix(r.URL.EscapedPath(), "/branches/rel%2F1"):
			if f.branch == nil {
				f.branch = m{"protected": false, "protection": m{"enabled": false, "required_status_checks": protects()}}
			}
			code, ok := f.branch["code"].(int)
			if !ok {
				code = 200
			}
			forgetest.Answer(w, code, f.branch)
		case strings.HasSuffix(r.URL.Path, "/check-runs"):
			forgetest.Answer(w, 200, m{"total_count": len(f.runs), "check_runs": f.runs})
		case strings.HasSuffix(r.URL.Path, "/status") && f.noStatuses:
			forgetest.Answer(w, 403, m{"message": "Resource not accessible by integration"})
		case strings.HasSuffix(r.URL.Path, "/status"):
			forgetest.Answer(w, 200, m{"state": "pending", "statuses": f.statuses})
		default:
			forgetest.Answer(w, 404, m{"message": "Not Found"})
		}
	})
}

// protects returns the checks that the protection of a branch requires.
func protects(list ...m) m {
	contexts := []any{}
	for _, k := range list {
		contexts = append(contexts, k["context"])
	}
	return m{"enforcement_level": map[bool]string{true: "non_admins", false: "off"}[len(list) > 0], "contexts": contexts, "checks": list}
}

func rollup(total int, more bool, nodes ...any) m {
	return m{"totalCount": total, "pageInfo": m{"hasNextPage": more, "endCursor": "next"}, "nodes": nodes}
}

func runNode(name, status, conclusion string, required bool) m {
	n := m{"__typename": "CheckRun", "name": name, "status": status, "conclusion": nil, "startedAt": nil, "completedAt": nil, "isRequired": required,
		"checkSuite": m{"createdAt": "2026-01-02T03:04:05Z", "app": nil}}
	if conclusion != "" {
		n["conclusion"] = conclusion
	}
	return n
}

// job returns a run of a job in a workflow that a pull request started; the workflow is empty if it is hidden or the App has none.
func job(workflow, suite string, id int, conclusion string) m {
	n := runNode("build", "COMPLETED", conclusion, false)
	n["url"] = fmt.Sprintf("https://github.example/octo/app/runs/%d", id)
	s := m{"id": suite, "createdAt": "2026-01-02T03:04:05Z", "app": m{"databaseId": 15368}, "workflowRun": nil}
	if workflow != "" {
		s["workflowRun"] = m{"event": "pull_request", "workflow": m{"id": workflow}}
	}
	n["checkSuite"] = s
	return n
}

func byPush(job m) m {
	job["checkSuite"].(m)["workflowRun"].(m)["event"] = "push"
	return job
}

func statusNode(name, state string, required bool) m {
	return m{"__typename": "StatusContext", "context": name, "state": state, "createdAt": "2026-01-02T03:04:05Z", "isRequired": required}
}

func TestChecksAsGitHubAnswers(t *testing.T) {
	t.Parallel()
	rule := func(kind string, params m) m { return m{"type": kind, "ruleset_id": 1, "parameters": params} }
	contexts := func(list ...m) m {
		return m{"required_status_checks": list, "strict_required_status_checks_policy": true}
	}
	forbidden := func(path ...any) []m {
		return []m{{"type": "FORBIDDEN", "path": append([]any{"repository"}, path...), "message": "Resource not accessible by integration"}}
	}
	const conclusions = "action_required=failure cancelled=failure failure=failure neutral=success new=failure skipped=success stale=failure " +
		"startup_failure=failure success=success timed_out=failure"
	var all []any
	for _, c := range strings.Fields(conclusions) {
		name, _, _ := strings.Cut(c, "=")
		all = append(all, runNode(name, "COMPLETED", strings.ToUpper(name), false))
	}
	tests := map[string]struct {
		fakeChecks
		want string
	}{
		"conclusions": {fakeChecks{pages: []m{rollup(len(all), false, all...)}}, conclusions},
		"states of runs": {fakeChecks{pages: []m{rollup(4, false, runNode("a", "QUEUED", "", true), runNode("b", "IN_PROGRESS", "", false),
			runNode("c", "WAITING", "", false), runNode("d", "REQUESTED", "", false))}}, "a=pending! b=pending c=pending d=pending"},
		"statuses": {fakeChecks{pages: []m{rollup(5, false, statusNode("a", "SUCCESS", true), statusNode("b", "ERROR", false),
			statusNode("c", "FAILURE", false), statusNode("d", "PENDING", false), statusNode("e", "EXPECTED", true))}},
			"a=success! b=failure c=failure d=pending e=pending!"},
		"no checks": {fakeChecks{}, ""},
		"two pages": {fakeChecks{pages: []m{rollup(2, true, runNode("a", "COMPLETED", "SUCCESS", true)), rollup(2, false, statusNode("b", "SUCCESS", true))}},
			"a=success! b=success!"},
		"a page without its checks": {fakeChecks{pages: []m{rollup(101, true, runNode("a", "COMPLETED", "SUCCESS", true)), rollup(1, false)}},
			"a=success! 100 hidden " + changed},
		"pages without end": {fakeChecks{pages: []m{rollup(200, true, runNode("a", "COMPLETED", "SUCCESS", true))}}, "a=success! 100 hidden"},
		"moved":             {fakeChecks{heads: []string{"new"}, pages: []m{rollup(1, false, runNode("a", "COMPLETED", "SUCCESS", true))}}, ""},
		"moved between two pages": {fakeChecks{heads: []string{"abc", "new"},
			pages: []m{rollup(2, true, runNode("a", "COMPLETED", "SUCCESS", true)), rollup(2, false)}}, ""},
		"protection": {fakeChecks{branch: m{"protected": true, "protection": m{"required_status_checks": protects(
			m{"context": "build", "app_id": 1234}, m{"context": "lint", "app_id": nil}, m{"context": "any", "app_id": -1})}}},
			"needs build@1234 needs lint needs any"},
		"protection on an old server": {fakeChecks{branch: m{"protected": true, "protection": m{"required_status_checks": m{
			"enforcement_level": "everyone", "contexts": []any{"build", "lint"}}}}}, "needs build needs lint"},
		"protection without checks": {fakeChecks{branch: m{"protected": true, "protection": m{"required_status_checks": protects()}}}, ""},
		"undisclosed protection":    {fakeChecks{branch: m{"protected": true}}, "(GitHub does not say which checks the protection of the base branch requires)"},
		"hidden protection":         {fakeChecks{branch: m{"code": 403, "message": "Resource not accessible by integration"}}, noProtection},
		"hidden branch":             {fakeChecks{branch: m{"code": 404, "message": "Branch not found"}}, noProtection},
		"required workflows": {fakeChecks{rules: []m{rule("workflows", m{"workflows": []any{m{"path": "ci.yml", "repository_id": 1}, m{"path": "x.yml", "repository_id": 1}}}),
			rule("workflows", m{"workflows": []any{m{"path": "ci.yml", "repository_id": 1}}})}}, "(2 workflows)"},
		"required workflows without names": {fakeChecks{rules: []m{rule("workflows", nil)}}, "(1 workflows)"},
		"two workflows with jobs of one name": {fakeChecks{pages: []m{rollup(3, false, job("W_1", "S_1", 1, "FAILURE"), job("W_2", "S_2", 2, "SUCCESS"),
			job("W_2", "S_3", 3, "SUCCESS"))}}, "build=failure build=success"},
		"hidden workflows": {fakeChecks{pages: []m{rollup(2, false, job("", "S_1", 1, "FAILURE"), job("", "S_2", 2, "SUCCESS"))},
			problems: forbidden("object", "statusCheckRollup", "contexts", "nodes", 0, "checkSuite", "workflowRun")}, "build=failure build=success"},
		"another App has no workflows":     {fakeChecks{pages: []m{rollup(2, false, job("", "S_1", 1, "FAILURE"), job("", "S_1", 2, "SUCCESS"))}}, "build=success"},
		"a workflow started by two events": {fakeChecks{pages: []m{rollup(2, false, job("W_1", "S_1", 1, "FAILURE"), byPush(job("W_1", "S_2", 2, "SUCCESS")))}}, "build=failure build=success"},
		"a check appears between two pages": {fakeChecks{pages: []m{rollup(2, true, runNode("a", "COMPLETED", "SUCCESS", true)),
			rollup(3, false, runNode("a", "COMPLETED", "SUCCESS", true), runNode("b", "COMPLETED", "SUCCESS", true))}}, "a=success! b=success! " + changed},
		"another base between two pages": {fakeChecks{bases: []string{"main", "rel/1"}, pages: []m{rollup(2, true, runNode("a", "COMPLETED", "SUCCESS", true)),
			rollup(2, false, runNode("b", "COMPLETED", "SUCCESS", true))}}, "a=success! b=success! " + changed},
		"two suites by REST": {fakeChecks{problems: forbidden("object", "statusCheckRollup"), runs: []m{
			{"id": 1, "name": "a", "status": "completed", "conclusion": "failure", "check_suite": m{"id": 1}},
			{"id": 2, "name": "a", "status": "completed", "conclusion": "success", "check_suite": m{"id": 2}},
			{"id": 3, "name": "a", "status": "completed", "conclusion": "neutral", "check_suite": m{"id": 2}}}}, "a=failure a=success " + noChecks},
		"rules": {fakeChecks{rules: []m{rule("deletion", nil), rule("not known yet", m{"required_status_checks": []any{}}),
			rule("required_status_checks", contexts(m{"context": "build", "integration_id": 15368}, m{"context": "lint"}, m{"context": "any", "integration_id": -1})),
			rule("required_status_checks", contexts(m{"context": "lint"}))}}, "needs build@15368 needs lint needs any"},
		"rules of an old server":  {fakeChecks{status: 404, message: "Not Found"}, ""},
		"rules of the free plan":  {fakeChecks{status: 403, message: "Upgrade to GitHub Pro or make this repository public to enable this feature."}, ""},
		"hidden rules":            {fakeChecks{status: 403, message: "Resource not accessible by integration"}, noRules},
		"a status that is hidden": {fakeChecks{pages: []m{rollup(2, false, runNode("a", "COMPLETED", "SUCCESS", true), nil)}, problems: forbidden("object", "statusCheckRollup", "contexts", "nodes", 1)}, "a=success! 1 hidden " + noChecks},
		"everything hidden": {fakeChecks{problems: forbidden("object", "statusCheckRollup"), runs: []m{{"name": "a", "status": "completed", "conclusion": "success"}},
			statuses: []m{{"context": "b", "state": "error"}}}, "a=success b=failure " + noChecks},
		"everything hidden, statuses by REST, too": {fakeChecks{problems: forbidden("object", "statusCheckRollup"), noStatuses: true,
			runs: []m{{"name": "a", "status": "in_progress", "conclusion": nil}}}, "a=pending " + noChecks},
		"an old server": {fakeChecks{problems: []m{{"message": "Field 'isRequired' doesn't exist on type 'CheckRun'"}},
			runs: []m{{"name": "a", "status": "completed", "conclusion": "success"}}}, "a=success (this GitHub does not say which checks are required)"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tt.heads == nil {
				tt.heads = []string{"abc"}
			}
			got := forgetest.Must(forgetest.New(t, tt.serve(t).URL).Checks(t.Context(), forgetest.Repo(), 3, "abc"))(t)
			if diff := cmp.Diff(tt.want, outline(got)); diff != "" {
				t.Error(diff)
			}
			if want := tt.heads[len(tt.heads)-1]; got.Head != want {
				t.Errorf("got head %s, want %s", got.Head, want)
			}
		})
	}
}

// Other refusals and failures are errors: the checks are read again later.
func TestChecksCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]fakeChecks{
		"rules fail":               {status: 500, message: "Server Error"},
		"the branch fails":         {branch: m{"code": 500, "message": "Server Error"}},
		"rules are refused":        {status: 403, message: "Repository access blocked"},
		"GraphQL fails":            {problems: []m{{"message": "Something went wrong"}}},
		"no such pull request":     {problems: []m{{"type": "NOT_FOUND", "path": []any{"repository", "pullRequest"}, "message": "Could not resolve to a PullRequest"}}},
		"pull request not granted": {problems: []m{{"type": "FORBIDDEN", "path": []any{"repository", "pullRequest"}, "message": "Resource not accessible by integration"}}},
	} {
		f.heads = []string{"abc"}
		_, err := forgetest.New(t, f.serve(t).URL, func(c *forge.Config) { c.Timeout = time.Minute }).Checks(t.Context(), forgetest.Repo(), 3, "abc")
		if err == nil || !strings.Contains(err.Error(), "read checks of abc on octo/app#3") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
