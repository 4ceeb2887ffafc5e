package likeness

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// exception is an allowed difference between a recording and the published descriptions.
type exception struct {
	where, what string // regular expressions that must match the complete parts of an unlike
	why         string
}

// exceptions returns all allowed differences. docs/assumptions.md documents them; an unused one must be removed.
func exceptions() []exception {
	return slices.Concat(serverExceptions(), restExceptions(), webhookExceptions())
}

func serverExceptions() []exception {
	const there = "is not there at an Enterprise Server"
	return []exception{
		{`(GET|POST|DELETE) .*/issues/\{issue_number\}/(parent|sub_issues|sub_issue) \d+`, there, "no Enterprise Server has sub-issues yet"},
		{`(GET|POST|DELETE) .*/issues/\{issue_number\}/dependencies/.*`, there, "Enterprise Servers have dependencies of issues from 3.19 on"},
	}
}

func restExceptions() []exception {
	return []exception{
		{`.* (405|409|422)`, `/status is not in .*`, "GitHub puts the status into every error; its description has it for some only"},
		{`[A-Z]+ /repositories/\d+(/.*)? \d+`, `.* no such route`, "GitHub serves them without describing them: renamed repositories redirect there"},
		{`GET /meta 200`, `/installed_version .*`, "an Enterprise Server reports its version here, and errand reads it"},
		{`GET /app/installations 200`, `/\*/account missing properties .*`, "the description requires an account to be a user and an enterprise at once here, and one of them elsewhere"},
		{`POST .*/pulls/\{pull_number\}/comments 201`, `request: / missing properties 'commit_id', 'path'`,
			"with in_reply_to, everything but the body is ignored, according to the description's text"},
		{`(GET|POST) .*/pulls/\{pull_number\}/comments 20[01]`, `(/\*)?/(line|position) got null, want integer`, "a reply in a thread whose line is gone has none, as in lists and webhooks"},
		{`GET .*/git/matching-refs/\{ref\} 200`, `has no parameter (page|per_page)`, "the client requests pages of every list; a list without pages ignores that"},
		{`(POST|PUT) .*/issues/\{issue_number\}/labels 200`, `request: / got array, want object`, "a bare list of names is allowed, according to the description's text"},
	}
}

func webhookExceptions() []exception {
	return []exception{
		{`(issues|issue_comment|status)(\..*)?`, `.*/user_view_type is not in .*`, "GitHub puts it into every account; the description omits it for some"},
		{`.*`, `.*/events/\* (issue_dependencies|sub_issues|pull_request_review_thread|installation_target) is none .*`, "the lists of events that an App can choose are older than these"},
		{`(push|check_suite\..*)`, `.*/email '.*\[bot\]@users.noreply.github.com' is not valid email.*`, "this is how GitHub writes the address of an App's account"},
		{`pull_request.*`, `older schema: /pull_request/(base|head)/repo missing property 'custom_properties'`, "only repositories of organizations have them"},
		{`check_(suite|run)\..*`, `older schema: (/check_run)?/check_suite/conclusion skipped is none .*`, "newer than the older schema"},
		{`issue_dependencies\..*`, `/ missing property 'organization'`, "a person's repository has none"},
	}
}

// allowances counts the uses of exceptions.
type allowances struct {
	list []exception
	used []int
}

func newAllowances(list []exception) *allowances {
	return &allowances{list: list, used: make([]int, len(list))}
}

// allows reports whether an exception covers a difference.
func (a *allowances) allows(u unlike) bool {
	for i, e := range a.list {
		if whole(e.where, u.where) && whole(e.what, u.what) {
			a.used[i]++
			return true
		}
	}
	return false
}

func whole(expr, s string) bool { return regexp.MustCompile(`^(?:` + expr + `)$`).MatchString(s) }

// TestExceptionsAreDocumented: docs/assumptions.md contains the reason of every exception.
func TestExceptionsAreDocumented(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../docs/assumptions.md")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(string(raw)), " ")
	for _, e := range exceptions() {
		if !strings.Contains(text, e.why) {
			t.Errorf("docs/assumptions.md lacks the exception for %s: %q", e.where, e.why)
		}
	}
}
